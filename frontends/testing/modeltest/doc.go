// Package modeltest gives the changes of package policytest to a model of the NetworkPolicy frontend, as its source
// does.
//
// # Concurrency
//
// Apply needs one user of the model at a time.
package modeltest
