// Package model computes what this node has to enforce of the network policies of the
// cluster: for each of its pods the policies that apply, for each such policy its rules,
// and the members of the sets of pods that these rules name.
//
// In come Kubernetes objects, trimmed to what matters; out come immutable values and the
// changes between them. The package knows nothing of nftables and does no I/O. Read
// types.go first. A number such as "rule 16" in a comment is that of a row in BEHAVIOUR.md
// in the parent directory.
package model
