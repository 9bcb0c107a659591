package isolation

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// arrivals are the ends at which a case arrived, by the case's number.
type arrivals map[*end]map[uint16]bool

// counting is a table that records the numbers of arriving packets. Replies do not match.
const counting = `table inet isolation {
	set v4 { typeof ip id; size 65535; flags dynamic; }
	set v6 { typeof ip6 flowlabel; size 65535; flags dynamic; }
	counter passed { }
	chain arrived {
		type filter hook %s priority %d; policy accept;
		udp sport 7 jump note
		tcp sport 7 jump note
		sctp sport 7 jump note
		icmp type echo-request jump note
		icmpv6 type echo-request jump note
		ip dscp 0x2e jump note
		ip6 dscp 0x2e jump note
	}
	chain note {
		counter name passed
		add @v4 { ip id }
		add @v6 { ip6 flowlabel }
	}
}
`

func (w *world) count(t *testing.T) {
	t.Helper()
	for _, e := range w.ends() {
		// At the node weft's chains come first; a pod sees all packets at its interface.
		hook, priority := "prerouting", -500
		if e.pod == nil && e != w.outside {
			hook, priority = "input", 1000
		}
		e.nft(t, fmt.Sprintf(counting, hook, priority))
	}
}

func (e *end) nft(t *testing.T, text string) string {
	t.Helper()
	out, err := e.Run(t.Context(), "nft", "-j", text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// the outside first
func (w *world) ends() []*end {
	all := []*end{w.outside}
	for _, s := range w.sites {
		all = append(append(all, s.node), s.pods()...)
	}
	return all
}

type listing struct {
	Nftables []struct {
		Set struct {
			Elem []any `json:"elem"`
		} `json:"set"`
		Counter struct {
			Packets int `json:"packets"`
		} `json:"counter"`
	} `json:"nftables"`
}

func (e *end) list(t *testing.T, what string) (out listing) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.nft(t, "list "+what)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (e *end) arrived(t *testing.T) map[uint16]bool {
	t.Helper()
	out := make(map[uint16]bool)
	for _, o := range e.list(t, "table inet isolation").Nftables {
		for _, v := range o.Set.Elem {
			if n, ok := v.(float64); ok && n >= firstID && n < 1<<16 {
				out[uint16(n)] = true
			}
		}
	}
	return out
}

// measure sends all cases, and returns their arrivals.
func (w *world) measure(t *testing.T, cases []*sample, rpFilter int) arrivals {
	t.Helper()
	w.begin(t, rpFilter)
	for _, s := range w.sites {
		// Earlier flows must not make new packets established.
		if _, err := s.node.Run(t.Context(), "conntrack", "-F"); err != nil {
			t.Fatal(err)
		}
	}
	// Twice, because a busy machine loses packets, and the kernel keeps few while it resolves a
	// neighbour.
	for range 2 {
		w.send(t, cases)
		w.drain(t)
	}
	return w.arrived(t)
}

// begin forgets earlier arrivals.
func (w *world) begin(t *testing.T, rpFilter int) {
	t.Helper()
	for _, s := range w.sites {
		if err := s.node.Sysctl("net/ipv4/conf/all/rp_filter", strconv.Itoa(rpFilter)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range w.ends() {
		e.nft(t, "flush set inet isolation v4; flush set inet isolation v6")
	}
}

func (w *world) arrived(t *testing.T) arrivals {
	t.Helper()
	out := make(arrivals)
	for _, e := range w.ends() {
		out[e] = e.arrived(t)
	}
	return out
}

// drain waits until packets stop arriving.
func (w *world) drain(t *testing.T) {
	t.Helper()
	before := -1
	for tick := time.NewTicker(100 * time.Millisecond); ; <-tick.C {
		now := 0
		for _, e := range w.ends() {
			for _, o := range e.list(t, "counter inet isolation passed").Nftables {
				now += o.Counter.Packets
			}
		}
		if now == before {
			tick.Stop()
			return
		}
		before = now
	}
}

func (w *world) send(t *testing.T, cases []*sample) {
	t.Helper()
	sockets := make(map[*end]int)
	for _, c := range cases {
		fd, ok := sockets[c.from]
		if !ok {
			err := c.from.Do(func() (err error) {
				fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			sockets[c.from] = fd
		}
		if err := unix.Sendto(fd, c.packet.frame(), 0, &unix.SockaddrLinklayer{Ifindex: c.from.device.Index}); err != nil {
			t.Fatalf("send %s: %v", c, err)
		}
	}
}
