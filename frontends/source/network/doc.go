// Package network parses protocols, ports and addresses in Kubernetes objects for all frontends.
//
// It returns net/netip values and a [Protocol]. Errors name the text and the required form; callers add
// object and field. All functions are safe for concurrent use.
package network
