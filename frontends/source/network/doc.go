// Package network parses the protocols, ports and addresses in Kubernetes objects, for the
// models of all frontends.
//
// Texts and numbers of an object come in, values of net/netip and a [Protocol] go out. Errors
// name the text and the form that is wanted; callers add the object and the field. All
// functions are safe for concurrent use.
package network
