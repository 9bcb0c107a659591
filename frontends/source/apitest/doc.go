// Package apitest is a Kubernetes API server for the tests of frontends. It lists,
// streams and watches objects over HTTP, in JSON or protobuf, with selectors and
// versions, and with the faults that a test sets.
//
// In come objects, from the test (Set, Delete) or from a client of the API (POST, PUT,
// DELETE); out go the answers of an API server. Read server.go first. The server has every
// resource that client-go knows, and those that Install adds. It does not validate objects.
// Command replay runs it as a process.
//
// # Concurrency
//
// All methods are safe for concurrent use.
package apitest
