// Package statuspage is the page of a node for people: is it all right, who publishes what, which findings and
// rejections there are, the last commits, Services with their endpoints, and a form for "weft explain". Its
// headline is a view of the conditions of all processes of the node (package conditions).
//
// In come GET requests on the port of the metrics, out go HTML pages. Read page.go first. What the pages show
// comes over the aggregator's socket, as that of "weft get" does.
//
// # Safety
//
// The pages are served on loopback only, and only if the request names an IP address or "localhost" as the
// host, so that a page of another site cannot read them by a name that resolves to loopback. Every process of the
// node's network namespace can read them. They change nothing, load nothing from elsewhere (a Content
// Security Policy says so), and everything that publishers have named is escaped, because html.go can write
// nothing else.
//
// # Cost
//
// A page that is open is read again every two seconds, by a script; without scripts it has to be reloaded. All
// readers share one reading a second of what the aggregator has. A question to "weft explain" and a list of
// Services have turns (aggregator/turns): one at a time, and a user rests for ten times as long as a question of theirs
// took, at most 10 s. The kernel says whose the other end of a connection is. A turn ends before the answer is
// sent. Nothing is done if no page is open.
package statuspage
