// Package policytest decides traffic from the objects of the Kubernetes API alone, and generates
// such objects. Tests compare the NetworkPolicy frontend with it. It shares no code with the
// frontend and follows the comments of the API's types, regardless of speed.
//
// It takes Pods, Namespaces, Nodes, NetworkPolicies and ClusterNetworkPolicies in a [Cluster], and
// a [Flow]. It returns a [Verdict] with the deciding policy and rule. A [Generator] makes random
// clusters and random changes from a seed. Read evaluate.go first.
//
// The package refuses to guess: it panics on an object that the API server rejects, such as a
// selector with an unknown operator. The tests of the frontend cover such objects, which may come
// from files or predate the validation.
//
// # Concurrency
//
// Evaluate only reads its Cluster. A Generator, or a Cluster that changes, needs one user at a
// time.
package policytest
