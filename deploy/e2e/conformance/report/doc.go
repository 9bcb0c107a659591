// Package report makes a page of the results of runs. In come the
// directories that package specs and the ClusterNetworkPolicy suite wrote, one for each subject and
// run ([Dir]); out go the tables, the JUnit files of all parts as one, and the specs that passed
// in the file of earlier results and fail now. Read table.go first, which has what is printed.
//
// A subject is what was tested: weft, kube-proxy, or weft in the chaos form. Several runs
// of a subject are repeats: a spec that has different results in them flakes, and its
// cell says how often it passed.
//
// A run of a part of the specs, or of one subject, changes only its own results in the file.
//
// # Concurrency
//
// Nothing here is safe for concurrent use, and nothing needs to be.
//
// # Errors
//
// A file that cannot be read or parsed is an error with its name. A run without results is one too.
package report
