// Package model computes the network policies that this node enforces: the policies of each local
// pod, the rules of each such policy, and the members of the sets of pods in these rules.
//
// It turns Kubernetes objects from the Parse functions into immutable values and their changes,
// without I/O. "Rule 16" in a comment is a row of testdata/behaviour.txt in the parent directory.
//
// An event marks the affected state; Refresh computes it. The outcome does not depend on the order
// of events.
//
// # Parts
//
// cluster has the pods by namespace and address, and sets has the selections.
// pods and policies turn events into changes of these. Refresh joins their outcome. Each part knows
// only the parts before it.
//
// # Policies and sets
//
// A policy is active while it selects a local pod. A set exists while an active policy names it.
// Their members are not stored, only changes: members follow from the pods at each address.
//
// # Shared addresses
//
// Events of the old and new owner of an address come in any order. A shared address is a member of
// a set only if all its pods are selected, or for a denying rule, if one pod is. The oldest local
// pod owns it, and the policies of all its local pods add up. An address of this node, of a
// ServiceCIDR, or of a special range such as loopback is ignored.
//
// # Invalid objects
//
// An invalid part is not an error: it is reported in a Notice and in the log, and does not accept
// traffic.
//
// # Memory
//
// The model keeps only strings that decoders allocate separately, or copies, so that API objects
// can be freed.
//
// # Concurrency
//
// A Model is not safe for concurrent use, except for the Parse functions and immutable results.
package model
