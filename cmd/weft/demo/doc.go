// Package demo runs the whole of weft with real traffic and says, step by
// step, what was expected and what was observed. It is what "weft demo" and
// "make run" do, and at the same time weft's end-to-end test.
//
// The cluster is made of network namespaces: two nodes with pods behind them,
// and a client outside. A pod is a namespace joined to its node by a veth pair
// and a route to its own address, so that every packet between pods passes the
// node's forwarding path, also between pods of one node. Servers are processes
// of this same binary (see Serve) inside the pods; on each node runs "weft run"
// on a directory of manifests, as a process of its own.
//
// Nothing outside is touched: Run starts itself anew in fresh network, PID and
// mount namespaces, inside a user namespace where it is not root. When that
// process ends, for whatever reason, the kernel ends all others and removes
// every namespace.
//
// The package needs no external binaries. Where nft(8) is installed it shows
// the ruleset and plays the foreign writer; without it these steps are skipped
// and say so.
package demo
