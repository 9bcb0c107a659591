// Package model computes the network policies that this node enforces: the policies of each local
// pod, the rules of each such policy, and the members of the sets of pods in these rules.
//
// It takes Kubernetes objects from the Parse functions, and returns immutable values and their
// changes. The package does not depend on nftables and does no I/O. "Rule 16" in a comment is a row
// of testdata/behaviour.txt in the parent directory.
//
// An event stores the parsed object and marks the affected state; Refresh computes it. The outcome
// does not depend on the order of events.
//
// # Policies and sets
//
// A policy is active while it selects a local pod. A set exists while an active policy names it.
// Members are not stored: they follow from the pods at each address.
//
// # Shared addresses
//
// Events of the old and new owner of an address come in any order. An address with several pods is
// a member of a set only if all its pods are selected, or for a denying rule, if one pod is. The
// oldest local pod owns it, and the policies of all its pods add up. An address of this node, of a
// ServiceCIDR, or of a range without pods is ignored.
//
// # Invalid objects
//
// An invalid part is reported in a Notice and in the log, and does not accept traffic: see
// ParsePolicy and ParseClusterPolicy.
//
// # Cost
//
// A pod event costs time proportional to the sets in use and to the policies that require a label
// of the pod or no label. A new set costs a walk over the pods of a namespace with its required
// label, or over all pods if the label's key is new.
//
// # Memory
//
// The model does not refer to API objects, so that they can be freed. It keeps only strings that
// decoders allocate separately, or copies.
//
// # Concurrency
//
// A Model is not safe for concurrent use. The Parse functions are. The results of Refresh and
// Snapshot are immutable.
//
// # Errors
//
// The methods do not return errors for invalid parts of objects.
package model
