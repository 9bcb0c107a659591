// Package install acts as a new user: it types the documentation's commands on a fresh cluster, and measures
// the time until Services answer.
//
//	cd deploy/e2e && go test -count=1 -v -timeout 2h ./install -install.kinds all -install.slow
//	go test -count=1 -v ./install -install.kinds kind,k3s,bare
//
// The table is printed, and written to install.md in the directory WEFT_PAGES.
//
// A block of code after a comment such as "install: kind" in a document is one script (commands_test.go).
// kubectl, helm, apt, systemctl and systemd are real.
//
// A world is a network of namespaces (package lab) with a control plane (package cluster) and nodes with the
// real kubelet (cmd/node), in a kind's initial state (kinds_test.go). A bare node is outside of the cluster:
// it runs its own systemd over a copy of the machine's files (bare_test.go).
//
// On every node the tests ask a ClusterIP from the host and from a pod, a NodePort from outside, and the
// cluster's DNS (forward_test.go). Images are present; the tests never pull or clone.
//
// wrong_test.go types wrong commands, and checks that the messages name the remedy.
package install
