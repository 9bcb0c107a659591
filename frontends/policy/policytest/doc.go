// Package policytest decides traffic from the objects of the Kubernetes API alone, and
// generates such objects. It is what the tests of the NetworkPolicy frontend are compared
// with: it shares no code with the frontend and is written from the comments of the API's
// types, without regard to speed.
//
// In come Pods, Namespaces, Nodes, NetworkPolicies and ClusterNetworkPolicies in a
// [Cluster], and a [Flow]; out comes a [Verdict] with the policy and the rule that decide.
// A [Generator] makes random clusters and random changes of them from a seed. Read
// evaluate.go first.
//
// The package refuses to guess: it panics on an object that the API server rejects, such as
// a selector with an unknown operator. What of these objects reaches a frontend from before
// the validation, or from a file, is tested in the frontend.
//
// # Concurrency
//
// Evaluate only reads its Cluster. A Generator and a Cluster that changes need one user at
// a time.
package policytest
