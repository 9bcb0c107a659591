// Package listen keeps TCP listeners of Services open: health check node ports, and NodePorts on loopback
// addresses.
//
// What a listener serves is its user's.
//
// # Concurrency
//
// All methods are safe for concurrent use. Only Listeners.Run opens and closes listeners.
//
// # Errors
//
// A failed address is reported (Config.Failed) and retried. Others go on.
package listen
