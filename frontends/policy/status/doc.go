// Package status writes the condition Accepted into the status of ClusterNetworkPolicies. The API
// version v1alpha2 leaves the types of conditions to the implementation. Begin with condition.go
// (the condition), and writer.go (the time at which this node writes it).
//
// It takes policies from a subscription to a source (Writer.Kind), and the policies that this node
// rejects (Writer.SetRejected). It sends requests to the API server, and needs the right to patch
// clusternetworkpolicies/status.
//
// Nearly all nodes would write the same condition. They do not elect a node, because thousands of
// nodes would have to poll a Lease. Instead, each node waits for a time that depends on its name,
// and skips a condition that another node has written meanwhile. The times are distributed so that,
// for any number of nodes, few end before the first write has reached all nodes (see delay). These
// few send their version of the policy, so that the API server accepts one write and rejects the
// others.
//
// # Concurrency
//
// The source and the frontend call methods from their goroutines; Run sends the requests, one at a
// time.
//
// # Errors
//
// A failed request is logged and retried after a minute. It has no other effect.
package status
