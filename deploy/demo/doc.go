// Package demo is "weft demo" and "make run": it runs all of weft with real traffic, and prints the
// observations of each step. It is also an end-to-end test.
//
// [Run] needs only the binary, and returns an error if a step failed. Read demo.go and step.go first.
//
// The cluster consists of network namespaces: two nodes, their pods, and a client outside. A veth pair and
// a route join a pod to its node, so that every packet between pods passes the node's forwarding path. The
// demo itself runs the servers in the pods. Each node runs "weft run" on a directory of manifests, in a
// separate process.
//
// The demo does not touch the host: Run starts itself again in new network, PID and mount namespaces, and
// in a user namespace if it is not root. When that process ends, the kernel ends all others and removes the
// namespaces.
//
// nft(8), if installed, prints the ruleset and acts as the foreign writer; without it these steps are
// skipped.
package demo
