// Package statuspage is the page of a node for people: its health, publishers, findings, rejections,
// last commits, Services with their endpoints, and a form for "weft explain". Its headline is a view
// of package conditions for all processes of the node.
//
// It answers GET requests on the port of the metrics with HTML pages of data from the aggregator's
// socket. Read page.go first.
//
// # Safety
//
// The pages are served on loopback only, and only if the request's host is an IP address or
// "localhost", so that a page of another site cannot read them by a name that resolves to loopback.
// Every process of the node's network namespace can read them. They are read-only and, by a Content
// Security Policy, load no other resources. html.go cannot write raw text, and so escapes all names of
// publishers.
//
// # Cost
//
// A script reloads an open page every two seconds. All readers share one read of the aggregator a
// second. Questions to "weft explain" and lists of Services take turns (aggregator/turns): one at a
// time, and a user rests for ten times the duration of a question, at most 10 s. The kernel knows the
// user at the other end of a connection. A turn ends before the answer is sent.
//
// # Without html/template
//
// A template calls methods by name, so the linker keeps every exported method: a third of the binary.
// html.go writes elements and escapes all text instead.
package statuspage
