// Package backends reads maps from destinations to backends. A key begins with an optional address,
// inet_proto and inet_service; the data is an address and a port. The functions are pure.
package backends
