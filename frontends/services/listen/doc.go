// Package listen keeps TCP listeners of Services open: health check node ports, and NodePorts on loopback
// addresses.
//
// It takes the wanted addresses, opens and closes listeners, and retries. What a listener serves is its
// user's.
//
// # Concurrency
//
// All methods are safe for concurrent use. Only Listeners.Run opens and closes listeners.
//
// # Errors
//
// A failed address is reported once for each different error of its Service, and retried. Others go on.
package listen
