// Package status writes the condition Accepted into the status of ClusterNetworkPolicies.
// The API of version v1alpha2 has conditions, and leaves their types to the implementation.
// Begin with condition.go, which says what the condition is, and writer.go, which says when
// this node writes it.
//
// What comes in are the policies, of a subscription to a source (Writer.Kind), and those
// that are rejected on this node (Writer.SetRejected). What goes out are requests to the API
// server, which need the right to patch clusternetworkpolicies/status.
//
// All nodes have the same policies, so that nearly all of them would write the same
// condition. No node is chosen: thousands of nodes would have to poll a Lease. Instead each
// node waits for a time that depends on its name, before it writes a condition that is
// missing, and does not write one that another node has written meanwhile. The times are
// distributed such that whatever the number of nodes is, few of them end before the first
// write has reached all nodes (see delay). Those few send the version of the policy that
// they know, so that the API server accepts one write and rejects the others.
//
// # Concurrency
//
// The source and the frontend call methods from their goroutines; Run sends the requests,
// one at a time.
//
// # Errors
//
// A request that fails is repeated after a minute and logged. Nothing else depends on it.
package status
