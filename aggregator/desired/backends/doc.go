// Package backends reads maps from destinations to backends. The key is an optional address,
// inet_proto and inet_service, the data an address and a port. It is pure.
package backends
