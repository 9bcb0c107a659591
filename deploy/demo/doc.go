// Package demo is "weft demo" and "make run": it runs all of weft with real traffic and prints observations.
// It is also an end-to-end test. Read demo.go and step.go first.
//
// The cluster consists of network namespaces: two nodes, their pods, and a client outside. A veth pair and a
// route join a pod to its node, so that packets between pods pass the node's forwarding path. Each node runs
// "weft run" on a directory of manifests.
//
// Run starts itself again in new network, PID and mount namespaces, and in a user namespace if it is not
// root. The namespaces end with that process.
//
// nft(8), if installed, prints the ruleset and acts as the foreign writer; otherwise these steps are skipped.
package demo
