// Package model is the node-local expected state: per Service port the
// addresses that it answers on and the endpoints that may be used from this
// node, with every decision about readiness, policy, topology and conflicts
// already made; beside it, what matters of this node and of the ServiceCIDRs.
//
// It knows Kubernetes objects on one side and nothing of nftables on the other.
// Events only store what they bring in parsed form and mark the Service dirty,
// if it says anything new; Refresh computes each dirty Service once and reports
// those whose outcome differs. The outcome depends on the objects that there
// are, not on the order in which they came. A bad part of an object is logged
// with the object's and the field's name, once, and left out; it never stops
// the rest.
//
// # Conflicts
//
// ClusterIPs, external addresses and those of load balancers are one space: one
// port of an address belongs to one Service, the oldest that wants it. NodePorts
// are a space of their own. Who goes without is told in a Notice.
//
// # Cost
//
// An event costs what its object says, and what follows of it costs what changes:
// nothing depends on how many Services there are, and of how many endpoints one has
// only the logarithm. For a Service with many endpoints (aLot) those of all its slices
// are kept merged for each port and family, with counts of what decides which of them
// are used; while that decision stays, the lists only take on what turned. Lists are
// values that share what does not differ, so to compare two versions of one costs what
// differs as well. Stats.Work counts all that is looked at.
//
// # Memory
//
// The model refers to no API object, not even to a string of one, so that they
// can be freed. What is gone leaves nothing behind. An IPv4 endpoint is 5 bytes in
// its slice and 7 in each list that has it.
//
// # Concurrency
//
// A Model is not safe for concurrent use. The Service values that it hands out
// are immutable.
package model
