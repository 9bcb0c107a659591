// Package packed reads the keys and data of maps from destinations to backends: an optional address,
// inet_proto and inet_service in the key, an address and a port in the data. The aggregator derives stale
// UDP flows from changes of such maps.
//
// The package is pure.
package backends
