// Package model computes the node-local state of Services: the addresses of each port and the endpoints that
// this node may use. It also has the node and the ServiceCIDRs.
//
// It takes Kubernetes objects, and returns immutable Service values and their changes. "rule 16" in a comment
// is a row of testdata/behaviour.txt in the parent directory.
//
// An event stores the parsed object and marks its Service dirty. Refresh computes each dirty Service once and
// returns the different outcomes. Outcomes do not depend on the order of events. An invalid part of an object
// is left out and logged once; the rest is used.
//
// # Conflicts
//
// A port of an address belongs to the Service with this ClusterIP, else to the oldest Service with a claim.
// The others get a Notice.
//
// # Cost
//
// An event costs its object, and Refresh costs the changed Services.
//
// # Memory
//
// The model never refers to API objects or their strings. A deleted object leaves no data.
//
// # Concurrency
//
// A Model is not safe for concurrent use.
package model
