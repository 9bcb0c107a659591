package conntrack

import (
	"fmt"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"
)

// TestOnlyStaleIsRead has a table with a flow of every kind: what the kernel sends is
// what is removed, as far as the filter can tell.
func TestOnlyStaleIsRead(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		stale                 []Change
		passes, read, deleted int
	}{
		{"nothing", []Change{{Addr: dns, Port: 53}}, 0, 0, 0},
		{"one backend", []Change{{Addr: dns, Port: 53, Removed: backend1}}, 1, 2, 2},
		{"backend without flows", []Change{{Addr: dns, Port: 53, Removed: aps("10.1.0.3:5353")}}, 1, 0, 0},
		{"untranslated", []Change{{Addr: noRule, Port: 53, First: true}}, 1, 1, 1},
		{"untranslated, none is", []Change{{Addr: dns, Port: 53, First: true}}, 1, 0, 0},
		// The backend's own flow comes as well.
		{"one backend of many destinations", []Change{{Addr: dns, Port: 53, Removed: backend1}, {Addr: other, Port: 53, Removed: backend1}, {Port: 30053, Removed: backend1}}, 1, 6, 5},
		{"many backends of many destinations", []Change{{Addr: dns, Port: 53, Removed: aps("10.1.0.1:5353", "10.1.0.2:5353")}, {Addr: other, Port: 53, Removed: backend1}}, 1, 4, 4},
		{"both families", []Change{{Addr: dns6, Port: 53, Removed: aps("[fd00:1::1]:5353")}, {Addr: dns, Port: 53, Removed: backend1}}, 2, 3, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.traffic(t)
			if !n.conn.reply {
				t.Fatal("this kernel is said not to filter by the reply")
			}
			deleted, err := n.conn.Flush(t.Context(), tt.stale)
			if err != nil || deleted != tt.deleted {
				t.Errorf("Flush = %d, %v; want %d", deleted, err, tt.deleted)
			}
			if got := n.conn.Passes(); got != uint64(tt.passes) { //nolint:gosec // a small number
				t.Errorf("%d passes, want %d", got, tt.passes)
			}
			if got := n.conn.read.Load(); got != uint64(tt.read) { //nolint:gosec // a small number
				t.Errorf("%d messages were read, want %d", got, tt.read)
			}
		})
	}
}

// TestKernelsThatCannotFilterReplies has kernels answer the probe as each kind does.
func TestKernelsThatCannotFilterReplies(t *testing.T) {
	n := newNode(t)
	for _, tt := range []struct {
		name  string
		flows int
		errno unix.Errno
		want  bool
	}{
		{"reads the flags of the reply", 0, unix.EINVAL, true},
		{"reads those of the original direction", 0, 0, false},
		{"knows no filter", 3, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &Conn{dump: nltest.Dial(func(req []netlink.Message) ([]netlink.Message, error) {
				if tt.errno != 0 {
					return nltest.Error(int(tt.errno), req)
				}
				var msgs []netlink.Message
				for range tt.flows {
					msgs = append(msgs, netlink.Message{Data: make([]byte, nfgenmsgLen)})
				}
				msgs = append(msgs, netlink.Message{Header: netlink.Header{Type: netlink.Done}, Data: make([]byte, 4)})
				for i := range msgs {
					msgs[i].Header.Sequence, msgs[i].Header.PID = req[0].Header.Sequence, nltest.PID
					msgs[i].Header.Flags = netlink.Multi
				}
				return msgs, nil
			})}
			if got, err := c.filtersReplies(); got != tt.want || err != nil {
				t.Errorf("filtersReplies = %v, %v; want %v", got, err, tt.want)
			}
		})
	}

	// Such a kernel is not asked for it: the flows are found all the same.
	n.serveUDP(t, "10.1.0.1:5353")
	for i := range 3 {
		n.ask(t, fmt.Sprintf("%s:%d", clientAddr, 4000+2*i), "10.96.0.10:53")
	}
	n.conn.reply = false
	if deleted, err := n.conn.Flush(t.Context(), []Change{{Addr: dns, Port: 53, Removed: backend1}}); deleted != 3 || err != nil {
		t.Errorf("Flush = %d, %v; want 3", deleted, err)
	}
}
