package migration

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// TestLostPacketIsSeen drops the first packet of one connection. The kernel retransmits it, so that
// both connections are answered.
func TestLostPacketIsSeen(t *testing.T) {
	h := newHost(t)
	var l net.Listener
	if err := h.node.Do(func() (err error) { l, err = net.Listen("tcp", "127.0.0.1:8080"); return err }); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprintf(c, "pod 8080 127.0.0.1:1 \"\"\npod 8080 127.0.0.1:1 \"first\"\n")
				_, _ = c.Read(make([]byte, 100))
			}()
		}
	}()
	rules := `table ip lossy { chain output { type filter hook output priority 0; tcp dport 8080 tcp flags & (syn | ack) == syn quota until 60 bytes drop; }; }`
	if _, err := h.node.Run(h.ctx, "nft", rules); err != nil {
		t.Fatal(err)
	}
	s := stream{from: h.node, node: &lab.Node{}, proto: "tcp", to: netip.MustParseAddrPort("127.0.0.1:8080")}
	if _, _, err := s.converse(); !errors.Is(err, errResent) {
		t.Errorf("a connection whose first packet was dropped: %v, want %v", err, errResent)
	}
	if answer, _, err := s.converse(); err != nil || answer.Pod != "pod" {
		t.Errorf("a connection without loss: %v, %v", answer, err)
	}
}
