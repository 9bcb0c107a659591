// Package modeltest gives the changes of package policytest to a model of the NetworkPolicy frontend, as its source
// does.
//
// # Concurrency
//
// Apply is as safe as the methods of the model, which needs one user at a time.
package modeltest
