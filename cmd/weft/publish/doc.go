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
// The violations are weft.v1.Violation. A line that is refused or malformed has
// no effect, whatever comes after it is done.
//
// # Resync
//
// Run keeps what the aggregator has acknowledged of each fragment, and what is
// on its way, and sends that as a snapshot when the connection was lost. What
// was rejected is forgotten: a fragment stays what it was before, and the next
// patch builds on that.
//
// # Bounds
//
// A line has at most MaxLine bytes. At most maxInFlight updates, and maxBytes
// of input, wait for their acknowledgement; further lines are not read until
// there is room.
//
// # What it does not do
//
// It judges no rule text, element or name: that is the aggregator's business.
// It takes no snapshot in several parts ("more"): a line has all of it, and the
// client sends it in parts itself.
package publish
