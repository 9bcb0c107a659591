package conntrack

import (
	"testing"

	"github.com/mdlayher/netlink"
)

// TestDeleteInBatches removes more flows than one batch holds, and leaves those of
// the other backend.
func TestDeleteInBatches(t *testing.T) {
	const flows = 2*deleteBatch + 7
	n := newNode(t)
	for i := range 2 * flows {
		must(t, n.inject(17, i, ap("10.96.0.10:53"), aps("10.1.0.1:5353", "10.1.0.2:5353")[i%2]))
	}
	if deleted, err := n.conn.Flush(t.Context(), []Stale{{Addr: dns, Port: 53, Removed: backend1}}); deleted != flows || err != nil {
		t.Errorf("Flush = %d, %v; want %d", deleted, err, flows)
	}
	if left := n.flows(t); len(left) != flows {
		t.Errorf("%d flows are left, want %d", len(left), flows)
	}
}

// TestDeleteAfterALateAnswer has the answers to an earlier call still in the buffer: they
// are not counted as those of the next call.
func TestDeleteAfterALateAnswer(t *testing.T) {
	n := newNode(t)
	must(t, n.inject(17, 1, ap("10.96.0.10:53"), backend1[0]))
	none := n.deletions(t)[0]
	if got, err := n.conn.remove([]netlink.Message{none}); got != 1 || err != nil {
		t.Fatalf("remove = %d, %v", got, err)
	}
	// An entry that does not exist any more, whose answers were not read.
	if _, err := n.conn.delete.SendMessages([]netlink.Message{none, none, ackRequest()}); err != nil {
		t.Fatal(err)
	}
	must(t, n.inject(17, 2, ap("10.96.0.10:53"), backend1[0]))
	for _, want := range []int{1, 0} {
		if got, err := n.conn.Flush(t.Context(), []Stale{{Addr: dns, Port: 53, Removed: backend1}}); got != want || err != nil {
			t.Errorf("Flush = %d, %v; want %d", got, err, want)
		}
	}
}

// deletions returns requests that delete the IPv4 flows.
func (n *node) deletions(t *testing.T) (reqs []netlink.Message) {
	t.Helper()
	req, err := dumpRequest(filter{family: familyIPv4})
	must(t, err)
	must(t, n.conn.pass(t.Context(), req, SelectAll(), func(e *Entry) error {
		req, err := e.deletion()
		reqs = append(reqs, req)
		return err
	}))
	return reqs
}
