// Package status writes the condition Accepted into the status of ClusterNetworkPolicies.
//
// It needs the right to patch clusternetworkpolicies/status.
//
// Nearly all nodes would write the same condition. Without an election, each node waits for a time
// that depends on its name, and skips a condition already written. Few waits end before the first
// write has reached all nodes (see delay); the API server accepts one write and rejects the others.
//
// # Concurrency
//
// Methods are safe for concurrent use; Run sends one request at a time.
//
// # Errors
//
// A failed request is logged and retried after a minute.
package status
