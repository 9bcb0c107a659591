// Package migrate is "weft migrate": it moves nodes of a cluster from kube-proxy to weft and back, one at a
// time.
//
// A label of the Node, [takeover.Label], selects its proxy. After "prepare" kube-proxy's DaemonSet selects
// nodes by the label, as weft's does (migration.enabled of the chart). The verbs only set labels and wait;
// "weft run --takeover --handover" acts on the node.
//
// In come objects of the API and a node's kernel rules; out go findings, labels and a patch of kube-proxy's
// DaemonSet. Read command.go, then assess.go and node.go.
//
// # Errors
//
// Errors have the API server's request, or the state that a node did not reach in time.
package migrate
