// Package apitest is a Kubernetes API server for tests of frontends, with selectors, versions and injected
// faults.
//
// It takes objects from the test or from API clients (POST, PUT, DELETE). It has all resources of client-go,
// and more from Install. It does not validate objects.
//
// # Concurrency
//
// All methods are safe for concurrent use.
package apitest
