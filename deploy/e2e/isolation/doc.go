// Package isolation sends every kind of packet from and to pods, and counts arrivals, with and without weft.
// Some pods have a policy that denies everything in both directions. Read isolation_test.go first.
//
//	cd deploy/e2e && go test -count=1 -v ./isolation
//	go test -count=1 ./isolation -isolation.write
//
// The second command writes the table of deploy/docs/policy.md; every run compares that table.
//
// One node routes between its pods, as the ptp CNI plugin does, the other has a bridge with nftables. Both
// have the same four pods. Frames leave AF_PACKET sockets with correct Ethernet addresses. Arrival is counted
// at the hook prerouting of a pod or the outside host, or at the hook input of the node after weft's chains.
// Each kind of packet is a sample (cases_test.go) with a number in its ports and header.
//
// The law (law_test.go) has no list of results: packets of an isolated pod never arrive; other packets arrive
// as without weft, except at isolated pods.
package isolation
