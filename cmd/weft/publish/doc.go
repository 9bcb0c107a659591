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
// A rejected or malformed line does not affect the others.
package publish
