package conntrack

import (
	"context"
	"net/netip"
	"testing"
	"time"
)

// TestLocals gives a namespace addresses and local ranges, and takes them away. Watch says what came,
// and a list what is there, as "fib daddr type local" does.
//
// Behaviour: 113.
func TestLocals(t *testing.T) {
	n := newNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	arrived, done := make(chan netip.Prefix, 64), make(chan error, 1)
	go func() { done <- n.conn.Watch(ctx, func(p netip.Prefix) { arrived <- p }) }()
	n.ns.Run(t, "ip", "link", "add", "d0", "type", "veth", "peer", "name", "d1")
	n.ns.Run(t, "ip", "link", "set", "d0", "up")
	for _, tt := range []struct {
		add, del []string
		prefix   string
		in, out  string
	}{
		{[]string{"addr", "add", "192.0.2.7/24", "dev", "d0"}, []string{"addr", "del", "192.0.2.7/24", "dev", "d0"}, "192.0.2.7/32", "192.0.2.7", "192.0.2.8"},
		{[]string{"addr", "add", "2001:db8::7/64", "dev", "d0", "nodad"}, []string{"addr", "del", "2001:db8::7/64", "dev", "d0"}, "2001:db8::7/128", "2001:db8::7", "2001:db8::8"},
		{[]string{"route", "add", "local", "203.0.113.0/25", "dev", "lo"}, []string{"route", "del", "local", "203.0.113.0/25", "dev", "lo"}, "203.0.113.0/25", "203.0.113.99", "203.0.113.129"},
		{[]string{"-6", "route", "add", "local", "2001:db8:7::/64", "dev", "lo"}, []string{"-6", "route", "del", "local", "2001:db8:7::/64", "dev", "lo"}, "2001:db8:7::/64", "2001:db8:7::9", "2001:db8:8::9"},
	} {
		is := func(want bool) {
			t.Helper()
			l, err := n.conn.listLocals()
			must(t, err)
			if got := l.contains(netip.MustParseAddr(tt.in)); got != want {
				t.Errorf("%s is local: %t, want %t", tt.in, got, want)
			}
			if l.contains(netip.MustParseAddr(tt.out)) {
				t.Errorf("%s is local", tt.out)
			}
		}
		is(false)
		n.ns.Run(t, "ip", tt.add...)
		for late := time.After(3 * time.Minute); ; {
			select {
			case p := <-arrived:
				if p != netip.MustParsePrefix(tt.prefix) {
					continue
				}
			case <-late:
				t.Fatalf("%s never arrived", tt.prefix)
			}
			break
		}
		is(true)
		n.ns.Run(t, "ip", tt.del...)
		is(false)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Watch = %v", err)
	}
}
