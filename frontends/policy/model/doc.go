// Package model computes the network policies that this node enforces: the policies of each local
// pod, the rules of each such policy, and the members of the sets of pods in these rules.
//
// It takes Kubernetes objects from the Parse functions, and returns immutable values and their
// changes. The package does not depend on nftables and does no I/O. Read types.go first, then
// model.go, pod.go and refresh.go. "Rule 16" in a comment is a row of testdata/behaviour.txt
// in the parent directory.
//
// An event stores the parsed object and marks the affected state. Refresh computes this state and
// returns the differences. The outcome does not depend on the order of events.
//
// # Policies and sets
//
// A policy is active while it selects a local pod. A set exists while an active policy names it.
// Members are not stored: they follow from the pods at each address. An event notes the members at
// the pod's addresses before and after; the difference is the change.
//
// # Shared addresses
//
// Several pods may share an address for a time, because the events of the old and new owner come in
// any order. It is a member of a set only if all its pods are selected, or for a denying rule, if
// one pod is. The oldest local pod owns it, and the policies of all its pods add up. An address of
// this node, of a ServiceCIDR, or of a range without pods is ignored.
//
// # Sandboxes
//
// The container runtime may report a local pod as a Sandbox, earlier than the API and for longer.
// It counts only for addresses that the API object of the same name lacks: see sandbox.go.
//
// # Invalid objects
//
// An invalid part is reported in a Notice and in the log, does not affect other objects, and does
// not accept traffic: see ParsePolicy and ParseClusterPolicy. A policy with more than 1,000 sets is
// invalid as a whole: see maxSets.
//
// # Cost
//
// The cost of a pod event is proportional to the sets in use and to the policies, in its namespace
// or in all, that require a label of the pod or no label. It does not depend on the number of pods,
// nor for a remote pod on the number of policies. The cost of a namespace event is proportional to
// the sets with selectors of namespaces, plus the pods of the namespace if such a set is affected.
// A new set costs a walk over the pods of a namespace with its required label, or over all pods if
// the label's key is new.
//
// # Memory
//
// The model does not refer to API objects, so that they can be freed. It keeps only strings that
// decoders allocate separately, or copies. Pods with equal labels or ports share them.
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
