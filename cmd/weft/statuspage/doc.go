// Package statuspage is the page of a node for people, with a form for "weft explain". Its headline
// is a view of package conditions.
//
// It is on the port of the metrics, with data from the aggregator's socket.
//
// # Safety
//
// The pages are served on loopback only, for the host "localhost" or an IP address, so that a page
// of another site cannot read them by a name that resolves to loopback. They are read-only and, by
// a Content Security Policy, load no other resources. html.go escapes all text.
//
// # Cost
//
// All readers share one read of the aggregator a second. Questions to "weft explain" and lists of
// Services take turns (aggregator/turns). A turn ends before the answer is sent.
//
// # Without html/template
//
// A template calls methods by name, so the linker would keep every exported method: a third of the
// binary.
package statuspage
