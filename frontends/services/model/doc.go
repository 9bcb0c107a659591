// Package model computes the node-local state of Services: for each port of a Service
// the addresses that it answers on, and the endpoints that this node may use, with all
// decisions about readiness, policy, topology and conflicts already made. It also has
// what matters of the node and of the ServiceCIDRs.
//
// In come Kubernetes objects; out come immutable Service values and the changes between
// them. The package knows nothing of nftables. Read model.go first, then service.go. A
// number such as "rule 16" in a comment is that of a row in BEHAVIOUR.md in the parent
// directory.
//
// An event stores the parsed object, and marks the Service dirty if anything changed.
// Refresh computes each dirty Service once, and returns those whose outcome differs. The
// outcome depends only on the objects that exist, not on their order of arrival. An
// invalid part of an object is left out and logged once, with the names of the object
// and the field; the rest of the object is used.
//
// # Conflicts
//
// ClusterIPs, external addresses and addresses of load balancers are one space: a port
// of an address belongs to one Service, the oldest that claims it. NodePorts are a space
// of their own. A Service that does not get its claim is reported in a Notice.
//
// # Cost
//
// The cost of an event is that of its object, and the cost of Refresh is that of what
// changed: neither depends on the number of Services, and little on the number of a
// Service's endpoints (a word is copied for every few hundred). For a Service with many endpoints (largeSize), the
// endpoints of all its slices are kept merged for each port and family, with the counts
// that decide which of them are used. While that decision stays the same, only the
// changed endpoints are applied to the lists. Two versions of a list share what is equal,
// so comparing them costs only the difference. Stats.Work counts all that is looked at.
//
// # Memory
//
// The model does not refer to any API object, or to a string of one, so that they can be
// freed. A deleted object leaves nothing behind. An IPv4 endpoint has 5 bytes in its
// slice and 7 in each list that contains it.
//
// # Concurrency
//
// A Model is not safe for concurrent use. The Service values that it returns are
// immutable.
//
// # Errors
//
// No method returns an error: see above for invalid parts of objects.
package model
