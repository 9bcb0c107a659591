// Package model is the node-local expected state: per Service port the
// addresses that it answers on and the endpoints that may be used from this
// node, with every decision about readiness, policy and conflicts already made.
//
// It knows Kubernetes objects on one side and nothing of nftables on the other.
// Events only store what they bring in parsed form and mark the Service dirty;
// Refresh computes each dirty Service once and reports those whose outcome
// differs. A bad part of an object is logged with the object's and the field's
// name, and left out; it never stops the rest.
//
// # Concurrency
//
// A Model is not safe for concurrent use. The Service values that it hands out
// are immutable.
package model
