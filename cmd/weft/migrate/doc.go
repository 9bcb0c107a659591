// Package migrate is "weft migrate": it takes the nodes of a cluster from kube-proxy to weft and back, one at
// a time.
//
// A label of the Node, [takeover.Label], says which proxy the node has. kube-proxy's DaemonSet selects
// nodes by it after "prepare", and so does that of weft (migration.enabled of the chart). The
// verbs only set labels and wait; what happens on the node is done by "weft run --takeover --handover".
//
// In come objects of the API and, on a node, the rules of the kernel; out go findings, labels and a patch of
// kube-proxy's DaemonSet. Read command.go, then assess.go and node.go.
//
// # Errors
//
// Errors are those of the API server, with what was asked, and those of a node that does not get where it
// should in time: they say what it waits for.
package migrate
