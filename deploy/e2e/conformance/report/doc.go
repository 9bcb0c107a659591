// Package report makes a page of conformance results. In come the directories of package specs and the
// ClusterNetworkPolicy suite, one for each subject and run ([Dir]); out go the tables and the
// regressions against a file of earlier results. Read table.go first.
//
// A subject is weft, kube-proxy, or weft under chaos. A spec with different results in a subject's runs is a
// flake. A partial run changes only its own results in the file.
//
// # Concurrency
//
// The package is not safe for concurrent use.
//
// # Errors
//
// An unreadable file is an error with its name. A run without results is also an error.
package report
