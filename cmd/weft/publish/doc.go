// Package publish implements "weft publish --stdin": a program without gRPC writes updates as lines
// of JSON, and reads one line for each, in the same order.
//
// A line of input is a weft.v1.PublishRequest in the JSON mapping of protocol buffers: a snapshot, a
// patch or a withdraw, with the caller's id. A line of output is one of
//
//	{"id": 1, "revision": 1790000000001}
//	{"id": 2, "line": 2, "error": "fragment deny rejected: ...", "violations": [...]}
//	{"line": 3, "error": "malformed update (column 9): unknown field \"snapshott\""}
//
// The violations are weft.v1.Violation. A rejected or malformed line does not affect the others.
//
// # Resync
//
// After a lost connection, client.Session sends each fragment as acknowledged, with the lines in
// flight; if rejected, it sends the acknowledged content, and then each line.
//
// # Concurrency
//
// A line has at most MaxLine bytes; reading stops while maxInFlight updates or maxBytes wait for
// their acknowledgement.
//
// # Errors
//
// Run returns errors of the input and the output, and an error if its context ends while updates
// wait.
//
// # Limits
//
// The package rejects snapshots in several parts ("more"): the client splits the snapshot of a
// line.
package publish
