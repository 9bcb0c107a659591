// Package policytest decides traffic from the objects of the Kubernetes API alone, and generates such
// objects. Tests compare the NetworkPolicy frontend with it. It shares no code with the frontend.
//
// A [Generator] makes random clusters and changes from a seed. It panics on an object that the API server
// rejects.
//
// # Concurrency
//
// Evaluate only reads its Cluster. A Generator or a changing Cluster needs one user at a time.
package policytest
