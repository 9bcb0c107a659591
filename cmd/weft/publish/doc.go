// Package publish implements "weft publish --stdin": a program without gRPC holds a publisher's
// session by writing updates as lines of JSON. It reads one line of JSON for each, in the same order.
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
// together with the lines in flight. If that is rejected, it sends the acknowledged content, and then
// each line by itself. A rejected line leaves its fragment unchanged for later patches.
//
// # Concurrency
//
// One goroutine reads lines, and the caller's writes answers. A line has at most MaxLine bytes. At
// most maxInFlight updates with maxBytes of input wait for their acknowledgement; reading stops until
// there is room.
//
// # Errors
//
// Run returns the errors of the input and the output, and an error if its context ends while updates
// wait for their acknowledgement. A rejected line is not an error of Run.
//
// # What it does not do
//
// The aggregator, not this package, checks rule text, elements and names. The package rejects
// snapshots in several parts ("more"): a line has the whole snapshot, and the client splits it.
package publish
