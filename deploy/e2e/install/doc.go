// Package install plays a new user: it types the commands of the documentation on a fresh cluster, and
// measures how long it takes until the cluster's Services answer.
//
//	cd deploy/e2e && go test -count=1 -v -timeout 2h ./install -install.kinds all -install.slow
//	go test -count=1 -v ./install -install.kinds kind,k3s,bare
//
// The table is printed, and is install.md in the directory WEFT_PAGES.
//
// The commands are those of the documents themselves: a block of code after a comment such as "install: kind" is one
// script. See commands_test.go. So a document and its test cannot differ. kubectl, helm, apt, systemctl and systemd are the real
// ones.
//
// A world is a network of namespaces (package lab) with a whole control plane (package cluster) and
// nodes, on each of which the real kubelet (cmd/node) runs what the real DaemonSets say. It has what a kind of cluster
// has before the user begins: kinds_test.go. A bare node is not a node of the cluster: a systemd of its own runs there, in
// namespaces, over a copy of the machine's files: bare_test.go.
//
// Forwarding means that on every node a packet from the host and one from a pod to a ClusterIP, one from outside to a NodePort, and a
// question to the cluster's DNS are answered: forward_test.go. Images are there; nothing is pulled or cloned.
//
// Wrong turns are what a new user may also type. Their tests have what the user is told then, and that it says what to do:
// wrong_test.go.
package install
