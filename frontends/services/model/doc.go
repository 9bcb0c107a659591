// Package model computes the node-local state of Services: the addresses of each port and the endpoints
// that this node may use, after all decisions about readiness, policy, topology and conflicts. It also
// has the node and the ServiceCIDRs.
//
// It takes Kubernetes objects, and returns immutable Service values and their changes. It does not know
// nftables. Read model.go first, then service.go. "rule 16" in a comment is a row of testdata/behaviour.txt
// in the parent directory.
//
// An event stores the parsed object and marks its Service dirty on a change. Refresh computes each dirty
// Service once and returns the different outcomes. Outcomes depend only on the existing objects, not on
// the order of events. An invalid part of an object is left out and logged once, with object and field;
// the rest is used.
//
// # Conflicts
//
// ClusterIPs, external addresses and load balancer addresses are one space. A port of an address belongs
// to the oldest Service that claims it. NodePorts are a separate space. The loser gets a Notice.
//
// # Cost
//
// An event costs its object, and Refresh costs the changed Services, independent of the number of Services.
// From largeSize endpoints on, the model keeps a Service's merged slices per port and family as packed
// lists (packed.go). A changed slice then costs its entries and a few passes over the bytes of these lists,
// about 1 ms for 100,000 endpoints. Stats.Work counts the visited objects.
//
// # Memory
//
// The model never refers to API objects or their strings. A deleted object leaves no data. An IPv4
// endpoint needs 5 bytes in its slice and 7 in each list.
//
// # Concurrency
//
// A Model is not safe for concurrent use. Returned Service values are immutable.
//
// # Errors
//
// Methods do not return errors; see above for invalid parts of objects.
package model
