// Package statuspage is the page of a node for people: its health, publishers, findings, rejections,
// last commits, Services with their endpoints, and a form for "weft explain". Its headline is a view
// of the conditions of all processes of the node (package conditions).
//
// It answers GET requests on the port of the metrics with HTML pages. Read page.go first. As "weft
// get" does, it reads its data over the aggregator's socket.
//
// # Safety
//
// The pages are served on loopback only, and only if the request names an IP address or "localhost" as
// the host, so that a page of another site cannot read them by a name that resolves to loopback. Every
// process of the node's network namespace can read them. They are read-only and, by a Content Security
// Policy, load no other resources. html.go escapes all names of publishers, because it cannot write
// raw text.
//
// # Cost
//
// A script reloads an open page every two seconds. All readers share one read of the aggregator a
// second. Questions to "weft explain" and lists of Services take turns (aggregator/turns): one at a
// time, and a user rests for ten times the duration of a question, at most 10 s. The kernel knows the
// user at the other end of a connection. A turn ends before the answer is sent. Without an open page
// there is no cost.
package statuspage
