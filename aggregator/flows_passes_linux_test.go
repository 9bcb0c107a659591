package aggregator_test

import "testing"

// wantPasses compares how often the table was read since the last call.
func (n *flowNode) wantPasses(t *testing.T, what string, want uint64) {
	t.Helper()
	now := n.conn.Passes()
	if got := now - n.passes; got != want {
		t.Errorf("%s: the table was read %d times, want %d", what, got, want)
	}
	n.passes = now
}

// TestFlowsAreReadWhenUDPLeft counts how often the table is read: a commit that takes
// no UDP backend away, and gives no destination its first, does not look at it.
func TestFlowsAreReadWhenUDPLeft(t *testing.T) {
	const (
		webTo1 = "10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 8080"
		webTo2 = "10.96.0.1 . tcp . 80 . 0 : 10.1.0.2 . 8080"
		nodeTC = "tcp . 30080 . 0 : 10.1.0.1 . 8080"
		also2  = "10.96.0.1 . udp . 53 . 1 : 10.1.0.2 . 8080"
		twice1 = "10.96.0.1 . udp . 53 . 2 : 10.1.0.1 . 8080"
	)
	n := newFlowNode(t)
	d, stop := n.run(t)
	for _, step := range []struct {
		what     string
		elements []string
		want     uint64
	}{
		{"TCP services come", []string{webTo1, nodeTC}, 0},
		{"a TCP endpoint is replaced", []string{webTo2, nodeTC}, 0},
		{"TCP services go", []string{webTo2}, 0},
		{"a UDP service comes", []string{webTo2, dnsTo1}, 1},
		{"it gets another backend", []string{webTo2, dnsTo1, also2}, 0},
		{"a backend takes another slot", []string{webTo2, dnsTo1, also2, twice1}, 0},
		{"and gives it up", []string{webTo2, dnsTo1, also2}, 0},
		{"TCP changes beside it", []string{webTo1, nodeTC, dnsTo1, also2}, 0},
		{"a backend goes", []string{webTo1, nodeTC, dnsTo1}, 1},
		{"many change at once", []string{webTo1, dnsTo2, nodeTo1, otherTo1}, 1},
		{"all of UDP goes", []string{webTo1}, 1},
	} {
		n.commitAndWait(t, d, step.elements...)
		n.wantPasses(t, step.what, step.want)
	}
	stop()

	// A start compares all flows, if there is a UDP service that they may belong to.
	d, stop = n.run(t)
	n.publish(t, d, webTo1)
	stop()
	n.wantPasses(t, "a start without UDP", 0)
	d, stop = n.run(t)
	n.publish(t, d, webTo1, dnsTo1)
	stop()
	n.wantPasses(t, "a start with a first UDP service, and the commit of it", 2)
	d, stop = n.run(t)
	n.publish(t, d, webTo1, dnsTo1)
	stop()
	n.wantPasses(t, "a start with a UDP service", 1)
}
