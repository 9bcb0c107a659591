// Package model computes what this node has to enforce of the network policies of the
// cluster: for each of its pods the policies that apply, for each such policy its rules,
// and the members of the sets of pods that these rules name.
//
// In come Kubernetes objects, each as a Parse function returns it; out come immutable values
// and the changes between them. The package knows nothing of nftables and does no I/O. Read
// types.go first, then model.go, pod.go and refresh.go. A number such as "rule 16" in a
// comment is that of a row in BEHAVIOUR.md in the parent directory.
//
// An event stores the parsed object, and marks what it may affect. Refresh computes that
// once, and returns what differs. The outcome depends only on the objects that exist, not on
// their order of arrival.
//
// # Policies and sets
//
// A policy is active while it selects a pod of this node. A set exists while an active policy
// names it. A set does not store its members: which of them are at an address follows from
// the pods that have it. An event notes the members at the addresses of its pod before and
// after, and what remains of that is the change.
//
// # Shared addresses
//
// Several pods may have the same address for a time, because the events of the old and the
// new owner come in any order. Then it is a member of a set only if all of its pods are
// selected, or one of them for a rule that denies. The oldest pod of this node that has it
// owns it, and the policies of all of them add up. An address of this node, of a ServiceCIDR,
// or of a range in which no pod can be is ignored.
//
// # Sandboxes
//
// The container runtime of this node may report a pod too, as a Sandbox: earlier than the
// API, and for longer. Such a pod counts like that of the API, but only for addresses that
// the API object of the same name does not have. See sandbox.go.
//
// # Invalid objects
//
// An invalid part is reported in a Notice and in the log, and does not affect other objects.
// What it would accept is not accepted: see ParsePolicy and ParseClusterPolicy.
// A policy that names more than 1,000 sets is invalid as a whole: see maxSets.
//
// # Cost
//
// The cost of an event of a pod is that of the sets in use and of the policies that require
// one of its labels, or none, in its namespace or in all. It does not depend on the number of
// pods, nor for a pod of another node on the number of policies. A namespace costs as much as
// the sets that select by labels of namespaces, and as its pods if one of these is affected.
// A set that comes into use costs a walk over the pods that it may have: in one namespace
// those with the label that it requires, or all of them if none required its key before.
//
// # Memory
//
// The model does not refer to any API object, so that they can be freed. Of their strings
// it keeps only those that decoders allocate on their own, or a copy. Pods with the same labels, or the same ports, share them.
//
// # Concurrency
//
// A Model is not safe for concurrent use. The Parse functions are. The values that Refresh
// and Snapshot return are immutable.
//
// # Errors
//
// No method returns an error: see above for invalid parts of objects.
package model
