// Package publish is what "weft publish --stdin" does: it lets a program that
// speaks no gRPC hold a publisher's session, by writing updates as lines of
// JSON and reading one line of JSON for each, in the same order.
//
// A line of input is a weft.v1.PublishRequest in the JSON mapping of protocol
// buffers: a snapshot, a patch or a withdraw, with the caller's id. A line of
// output is one of
//
//	{"id": 1, "revision": 1790000000001}
//	{"id": 2, "line": 2, "error": "fragment deny rejected: ...", "violations": [...]}
//	{"line": 3, "error": "malformed update (column 9): unknown field \"snapshott\""}
//
// The violations are weft.v1.Violation. A line that is rejected or malformed has
// no effect on the others. Read publish.go first, then content.go.
//
// # Resync
//
// A client.Session holds the stream. After a lost connection it sends each
// fragment as it was acknowledged, with the lines that were in flight. If that is
// rejected, it sends what was acknowledged, and then each line by itself. A
// rejected line leaves its fragment as it was, and later patches build on that.
//
// # Concurrency
//
// One goroutine reads lines, and the caller's writes answers. A line has at most
// MaxLine bytes. At most maxInFlight updates, and maxBytes of input, wait for their
// acknowledgement; no further lines are read until there is room.
//
// # Errors
//
// Run returns the errors of the input and the output, and an error if its context ends while
// updates wait for their acknowledgement. A rejected line is not an error of Run.
//
// # What it does not do
//
// It does not judge rule text, elements or names: the aggregator does. It rejects
// snapshots in several parts ("more"): a line has the whole snapshot, and the
// client sends it in parts.
package publish
