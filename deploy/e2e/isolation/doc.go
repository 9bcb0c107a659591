// Package isolation sends every kind of packet that a pod's interface can send or receive,
// and counts what arrives, without weft and with it. Some pods have a policy that denies
// everything in both directions, others have none.
//
//	cd deploy/e2e && go test -count=1 -v ./isolation
//	go test -count=1 ./isolation -isolation.write
//
// The second command writes the table of deploy/docs/policy.md anew, which every run compares
// with what it has seen.
//
// One node routes between its pods, as the ptp CNI plugin does, the other has them on a bridge
// whose packets pass nftables. Both have the same four pods. Frames leave by AF_PACKET sockets with
// correct addresses of Ethernet, so that only weft and the kernel's own checks stop them. A
// packet has arrived if a pod or the outside host has it at the hook prerouting, before the
// receiver's own checks, or if the node has it at the hook input after weft's chains. Each kind of packet
// is a sample (cases_test.go) with a number, which is in its ports and in its header: all of a run are sent
// at once and told apart afterwards.
//
// The law (law_test.go) has no list of results: what an isolated pod sends arrives nowhere, and what
// others send arrives where it arrived without weft, but not at an isolated pod. Read
// isolation_test.go first.
package isolation
