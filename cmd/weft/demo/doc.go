// Package demo is "weft demo" and "make run": it runs the whole of weft with real
// traffic, and prints for each step what was observed. It is also an end-to-end test.
//
// [Run] needs only the binary itself. It prints the steps, and returns an error if one of
// them failed. Read demo.go and step.go first.
//
// The cluster consists of network namespaces: two nodes, their pods, and a client
// outside. A veth pair and a route join a pod to its node, so that every packet between
// pods, also of one node, passes the node's forwarding path. The demo itself runs
// the servers in the pods. On each node "weft run" follows a directory of
// manifests, as a process of its own.
//
// Nothing outside is touched: Run starts itself again in new network, PID and mount
// namespaces, and in a user namespace if it is not root. When that process ends, the
// kernel ends all others and removes the namespaces.
//
// The package needs no other binaries. If nft(8) is installed, it prints the ruleset and
// acts as the foreign writer; without it these steps are skipped.
package demo
