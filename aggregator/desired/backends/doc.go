// Package backends reads maps from destinations to backends: an optional address, inet_proto and
// inet_service in the key, an address and a port in the data. Stale UDP flows follow from their
// changes.
//
// The package is pure.
package backends
