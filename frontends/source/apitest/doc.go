// Package apitest is a Kubernetes API server for tests of what follows one: it
// lists, streams and watches the kinds that a Service frontend follows, over
// HTTP, in JSON or protobuf, with the server's selectors and versions, and with
// faults where a test wants them.
//
// It judges nothing and forgets nothing but what Compact and its limit of
// history tell it to. Objects come from the test, by Set and Delete, or from a client
// of the API, by POST, PUT and DELETE. Command replay is a server in a process of its own.
//
// # Concurrency
//
// All methods can be called at any time from any goroutine.
package apitest
