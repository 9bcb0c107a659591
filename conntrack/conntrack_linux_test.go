package conntrack

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// traffic makes one flow of each kind and returns the live TCP connection.
func (n *node) traffic(t *testing.T) *tcpConn {
	t.Helper()
	for _, addr := range []string{"10.1.0.1:5353", "10.1.0.2:5353", "[fd00:1::1]:5353"} {
		n.ns.Echo(t, addr)
	}
	n.ask(t, clientAddr+":4000", "10.96.0.10:53")
	n.ask(t, clientAddr+":4001", "10.96.0.10:53")
	n.ask(t, clientAddr+":4100", "10.96.0.11:53")
	n.ask(t, clientAddr+":4200", "10.1.0.1:5353")
	n.shout(t, clientAddr+":4300", "10.96.0.12:53")
	n.ask(t, clientAddr+":4400", "192.0.2.1:30053")
	n.ask(t, clientAddr+":4500", "198.51.100.1:30053")
	n.ask(t, "["+clientAddr6+"]:4600", "[fd00:96::10]:53")
	n.ask(t, clientAddr+":4700", "10.96.0.10:53")
	return n.dialTCP(t, "10.96.0.10:53")
}

// all are the flows that traffic leaves behind.
var all = []string{
	"tcp 192.0.2.1:0 -> 10.96.0.10:53 = 10.1.0.1:5353",
	"udp 192.0.2.1:4000 -> 10.96.0.10:53 = 10.1.0.1:5353",
	"udp 192.0.2.1:4001 -> 10.96.0.10:53 = 10.1.0.2:5353",
	"udp 192.0.2.1:4100 -> 10.96.0.11:53 = 10.1.0.1:5353",
	"udp 192.0.2.1:4200 -> 10.1.0.1:5353 = 10.1.0.1:5353",
	"udp 192.0.2.1:4300 -> 10.96.0.12:53 = 10.96.0.12:53",
	"udp 192.0.2.1:4400 -> 192.0.2.1:30053 = 10.1.0.1:5353",
	"udp 192.0.2.1:4500 -> 198.51.100.1:30053 = 10.1.0.1:5353",
	"udp 192.0.2.1:4700 -> 10.96.0.10:53 = 10.1.0.1:5353 zone 7",
	"udp [2001:db8::1]:4600 -> [fd00:96::10]:53 = [fd00:1::1]:5353",
}

var (
	dns      = netip.MustParseAddr("10.96.0.10")
	other    = netip.MustParseAddr("10.96.0.11")
	noRule   = netip.MustParseAddr("10.96.0.12")
	dns6     = netip.MustParseAddr("fd00:96::10")
	backend1 = aps("10.1.0.1:5353")
)

// TestFlush removes what a commit made stale from a table with a flow of every kind, and nothing else. The kernel sends
// little more than that.
//
// Behaviour: 106, 107, 109, 110.
func TestFlush(t *testing.T) {
	many := []Stale{{Addr: dns, Port: 53, Removed: backend1}, {Addr: other, Port: 53, Removed: backend1}}
	for _, tt := range []struct {
		name         string
		stale        []Stale
		gone         []string
		passes, read int
	}{
		{"nothing", []Stale{{Addr: dns, Port: 53}}, nil, 0, 0},
		{"one backend, in every zone", many[:1], []string{":4000 ", ":4700 "}, 1, 2},
		{"backend without flows", []Stale{{Addr: dns, Port: 53, Removed: aps("10.1.0.3:5353")}}, nil, 1, 0},
		{"two services, common port", many, []string{":4000 ", ":4100 ", ":4700 "}, 1, 3},
		{"many backends of many destinations", append([]Stale{{Addr: dns, Port: 53, Removed: aps("10.1.0.2:5353")}}, many...),
			[]string{":4000 ", ":4001 ", ":4100 ", ":4700 "}, 1, 4},
		// The backend's own flow comes as well.
		{"one backend of many destinations", append([]Stale{{Port: 30053, Removed: backend1}}, many...),
			[]string{":4000 ", ":4100 ", ":4400 ", ":4500 ", ":4700 "}, 1, 6},
		{"untranslated", []Stale{{Addr: noRule, Port: 53, First: true}}, []string{":4300 "}, 1, 1},
		{"untranslated only", []Stale{{Addr: dns, Port: 53, First: true}}, nil, 1, 0},
		{"node port of this node, and of an address that has gone", []Stale{{Port: 30053, Removed: backend1}}, []string{":4400 ", ":4500 "}, 1, 2},
		{"both families", append([]Stale{{Addr: dns6, Port: 53, Removed: aps("[fd00:1::1]:5353")}}, many[0]), []string{":4000 ", ":4600 ", ":4700 "}, 2, 3},
		{"begun by an address", []Stale{{Addr: ap(clientAddr + ":4200").Addr(), Port: 4200, First: true, Answered: true}}, []string{":4200 "}, 1, 1},
		{"begun by a node port", []Stale{{Port: 4200, First: true, Answered: true}}, []string{":4200 "}, 2, 1},
		{"begun and translated", []Stale{{Port: 4000, First: true, Answered: true}}, nil, 2, 1},
		{"begun elsewhere", []Stale{{Addr: dns, Port: 53, First: true, Answered: true}}, nil, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			if !n.conn.reply {
				t.Fatal("this kernel is said not to filter by the reply")
			}
			tcp := n.traffic(t)
			if got := n.flows(t); !slices.Equal(got, all) {
				t.Fatalf("flows before:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(all, "\n"))
			}
			deleted, err := n.conn.Flush(t.Context(), tt.stale)
			if err != nil || deleted != len(tt.gone) {
				t.Errorf("Flush = %d, %v; want %d", deleted, err, len(tt.gone))
			}
			if passes, read := int(n.conn.Passes()), int(n.conn.read.Load()); passes != tt.passes || read != tt.read { //nolint:gosec // small
				t.Errorf("%d messages were read in %d passes, want %d in %d", read, passes, tt.read, tt.passes)
			}
			n.checkGone(t, tt.gone)
			tcp.check(t)
		})
	}
}

// checkGone compares the table with all flows but those that contain one of
// the words.
func (n *node) checkGone(t *testing.T, gone []string) {
	t.Helper()
	want := slices.DeleteFunc(slices.Clone(all), func(flow string) bool {
		return slices.ContainsFunc(gone, func(word string) bool { return strings.Contains(flow, word) })
	})
	if got := n.flows(t); !slices.Equal(got, want) {
		t.Errorf("flows after:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestReconcile compares all flows with where they may go, as after a restart.
//
// Behaviour: 107, 110, 114.
func TestReconcile(t *testing.T) {
	for _, tt := range []struct {
		name string
		live []Destination
		gone []string
	}{
		{"nothing", nil, nil},
		{"all as it should be", []Destination{
			{Addr: dns, Port: 53, Backends: aps("10.1.0.1:5353", "10.1.0.2:5353")},
			{Addr: dns6, Port: 53, Backends: aps("[fd00:1::1]:5353")},
			{Port: 30053, Backends: backend1},
		}, nil},
		{"backend replaced while away", []Destination{{Addr: dns, Port: 53, Backends: aps("10.1.0.2:5353", "10.1.0.3:5353")}},
			[]string{":4000 ", ":4700 "}},
		{"untranslated while away", []Destination{{Addr: noRule, Port: 53, Backends: backend1}}, []string{":4300 "}},
		{"node port", []Destination{{Port: 30053, Backends: aps("10.1.0.2:5353")}}, []string{":4400 ", ":4500 "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			tcp := n.traffic(t)
			deleted, err := n.conn.Reconcile(t.Context(), tt.live)
			if err != nil || deleted != len(tt.gone) {
				t.Errorf("Reconcile = %d, %v; want %d", deleted, err, len(tt.gone))
			}
			n.checkGone(t, tt.gone)
			tcp.check(t)
		})
	}
}

func TestEmptyTable(t *testing.T) {
	ns := nfttest.New(t)
	must(t, ns.Do(func() error {
		c, err := Open()
		if err != nil {
			return err
		}
		defer c.Close()
		if n, err := c.Flush(t.Context(), []Stale{{Port: 53, First: true}}); n != 0 || err != nil {
			t.Errorf("Flush = %d, %v; want 0", n, err)
		}
		return nil
	}))
}

func TestCancelled(t *testing.T) {
	n := newNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.conn.Flush(ctx, []Stale{{Addr: dns, Port: 53, First: true}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Flush = %v, want %v", err, context.Canceled)
	}
	if _, err := n.conn.Flush(t.Context(), []Stale{{Addr: dns, Port: 53, First: true}}); err != nil {
		t.Errorf("Flush after a cancelled one: %v", err)
	}
}

func TestOpenWithoutCapability(t *testing.T) {
	ns := nfttest.New(t)
	err := ns.Do(func() error {
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&hdr, &data[0]); err != nil {
			return err
		}
		data[0].Effective &^= 1 << unix.CAP_NET_ADMIN
		if err := unix.Capset(&hdr, &data[0]); err != nil {
			return err
		}
		c, err := Open()
		if err == nil {
			_ = c.Close()
		}
		return err
	})
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "CAP_NET_ADMIN") {
		t.Errorf("Open = %v, want an error that names CAP_NET_ADMIN", err)
	}
}
