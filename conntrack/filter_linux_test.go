package conntrack

import (
	"fmt"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"
)

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
	n.ns.Echo(t, "10.1.0.1:5353")
	for i := range 3 {
		n.ask(t, fmt.Sprintf("%s:%d", clientAddr, 4000+2*i), "10.96.0.10:53")
	}
	n.conn.reply = false
	if deleted, err := n.conn.Flush(t.Context(), []Stale{{Addr: dns, Port: 53, Removed: backend1}}); deleted != 3 || err != nil {
		t.Errorf("Flush = %d, %v; want 3", deleted, err)
	}
}
