package conntrack

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"
)

// interrupt has the kernel say for the next times that the table changed during the
// dump, and leave out all flows but the first. It returns the number of dumps.
func (n *node) interrupt(t *testing.T, times int) *int {
	t.Helper()
	dumps := new(int)
	real := n.conn.dump
	n.conn.dump = nltest.Dial(func(req []netlink.Message) ([]netlink.Message, error) {
		*dumps++
		if _, err := real.Send(req[0]); err != nil {
			return nil, err
		}
		msgs, err := real.Receive()
		if err != nil {
			return nil, err
		}
		if *dumps <= times {
			msgs = msgs[:min(1, len(msgs))]
		}
		msgs = append(msgs, netlink.Message{Data: make([]byte, 4)})
		for i := range msgs {
			msgs[i].Header.Sequence, msgs[i].Header.PID = req[0].Header.Sequence, nltest.PID
			if *dumps <= times {
				msgs[i].Header.Flags |= netlink.DumpInterrupted
			}
			msgs[i].Header.Flags |= netlink.Multi
		}
		msgs[len(msgs)-1].Header.Type = netlink.Done
		return msgs, nil
	})
	t.Cleanup(func() { _ = real.Close() })
	return dumps
}

// TestInterruptedDump has the table change while it is read: it is read again, five
// times in all, and what was seen is removed in any case, so that a table that
// never rests is cleaned as well.
//
// Behaviour: 115.
func TestInterruptedDump(t *testing.T) {
	const flows = 8
	for _, tt := range []struct {
		times, dumps, deleted int
		ok                    bool
	}{
		{0, 1, flows, true},
		{1, 2, flows, true},
		{4, 5, flows, true},
		{100, 5, 5, false},
	} {
		t.Run(fmt.Sprintf("%d times", tt.times), func(t *testing.T) {
			n := newNode(t)
			n.ns.Echo(t, "10.1.0.1:5353")
			for i := range flows {
				n.ask(t, fmt.Sprintf("%s:%d", clientAddr, 4000+2*i), "10.96.0.10:53")
			}
			dumps := n.interrupt(t, tt.times)
			deleted, err := n.conn.Flush(t.Context(), []Stale{{Addr: dns, Port: 53, Removed: backend1}})
			if deleted != tt.deleted || (err == nil) != tt.ok || err != nil && !errors.Is(err, unix.EINTR) {
				t.Errorf("Flush = %d, %v: want %d, and EINTR: %t", deleted, err, tt.deleted, !tt.ok)
			}
			if *dumps != tt.dumps {
				t.Errorf("the table was read %d times, want %d", *dumps, tt.dumps)
			}
			if got := len(n.flows(t)); got != flows-tt.deleted {
				t.Errorf("%d flows are left, want %d", got, flows-tt.deleted)
			}
		})
	}
}
