// Package network parses protocols, ports and addresses in Kubernetes objects for all frontends.
//
// Errors name the text and the required form. All functions are safe for concurrent use.
package network
