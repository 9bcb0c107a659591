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
// An event costs its object, and Refresh costs the changes. Neither depends on the number of Services,
// and little on a Service's endpoints: one word is copied for every few hundred. A Service from largeSize
// on keeps its endpoints merged per port and family, with the counts that choose among them. While the
// choice stays the same, only changed endpoints are applied. Versions of a list share equal parts, so a
// comparison costs the difference. Stats.Work counts the visited objects.
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
