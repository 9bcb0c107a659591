// Package report makes deploy/docs/conformance.md of the results of runs. In come the
// directories that package specs and the ClusterNetworkPolicy suite wrote, one for each subject and
// run ([Dir]); out go the tables, the JUnit files of all parts as one, and the specs that passed
// in the committed table and fail now. Read table.go first, which has what is printed.
//
// A subject is what was tested: weft, kube-proxy, or weft in the chaos form. Several runs
// of a subject are repeats: a spec that has different results in them flakes, and its
// cell says how often it passed.
//
// A run of a part of the specs, or of one subject, changes only its own cells: the others
// keep what the file has. What is outside of the markers in the file is never changed.
//
// # Concurrency
//
// Nothing here is safe for concurrent use, and nothing needs to be.
//
// # Errors
//
// A file that cannot be read or parsed is an error with its name. A run without results is one too.
package report
