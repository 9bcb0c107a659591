// Package publish implements "weft publish --stdin": a program without gRPC holds a publisher's
// session by writing updates as lines of JSON, and reads one line of JSON for each, in the same order.
//
// A line of input is a weft.v1.PublishRequest in the JSON mapping of protocol buffers: a snapshot, a
// patch or a withdraw, with the caller's id. A line of output is one of
//
//	{"id": 1, "revision": 1790000000001}
//	{"id": 2, "line": 2, "error": "fragment deny rejected: ...", "violations": [...]}
//	{"line": 3, "error": "malformed update (column 9): unknown field \"snapshott\""}
//
// The violations are weft.v1.Violation. A rejected or malformed line does not affect the others. Read
// publish.go first, then content.go.
//
// # Resync
//
// A client.Session holds the stream. After a lost connection it sends each fragment as acknowledged,
// with the lines in flight. If that is rejected, it sends the acknowledged content, and then each line
// by itself. A rejected line leaves its fragment unchanged for later patches.
//
// # Concurrency
//
// One goroutine reads lines, and the caller's writes answers. A line has at most MaxLine bytes.
// Reading stops while maxInFlight updates or maxBytes of input wait for their acknowledgement.
//
// # Errors
//
// Run returns errors of the input and the output, and an error if its context ends while updates wait
// for their acknowledgement. A rejected line is not an error of Run.
//
// # Limits
//
// The aggregator checks rule text, elements and names. The package rejects snapshots in several parts
// ("more"): the client splits the whole snapshot of a line.
package publish
