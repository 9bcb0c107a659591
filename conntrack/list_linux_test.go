package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ti-mo/conntrack"
	"golang.org/x/sys/unix"
)

// snatRules send the flows of one port with the address of the first backend as source.
const snatRules = `
table ip masked {
	chain post {
		type nat hook postrouting priority srcnat
		udp dport 5353 udp sport 4900 snat to 10.1.0.2:4901
	}
}`

// ping has a host answer an echo request.
func (n *node) ping(t *testing.T, from, to string, id uint16) {
	t.Helper()
	network, kind := "ip4:icmp", byte(8)
	if netip.MustParseAddr(to).Is6() {
		network, kind = "ip6:ipv6-icmp", 128
	}
	n.do(t, func() error {
		conn, err := net.DialIP(network, &net.IPAddr{IP: net.ParseIP(from)}, &net.IPAddr{IP: net.ParseIP(to)})
		if err != nil {
			return err
		}
		defer conn.Close()
		msg := binary.BigEndian.AppendUint16([]byte{kind, 0, 0, 0}, id)
		msg = append(msg, 0, 1)
		// IPv6's checksum is the kernel's to fill in.
		sum := uint32(kind)<<8 + uint32(id) + 1
		binary.BigEndian.PutUint16(msg[2:], ^uint16(sum+sum>>16)) //nolint:gosec // folded
		return insist(conn, msg)
	})
}

// entries is a table with an entry of every kind.
func (n *node) entries(t *testing.T) *tcpConn {
	t.Helper()
	n.ns.Nft(t, snatRules)
	tcp := n.traffic(t)
	n.ask(t, clientAddr+":4900", "10.1.0.1:5353")
	n.ping(t, clientAddr, "10.1.0.1", 77)
	n.ping(t, clientAddr6, "fd00:1::1", 78)
	return tcp
}

// list returns what List returns, in words and sorted.
func (n *node) listed(t *testing.T, s *Selection) []string {
	t.Helper()
	var out []string
	must(t, n.conn.List(t.Context(), s, func(e *Entry) error {
		out = append(out, fmt.Sprintf("%d %v > %v reply %v > %v zone %d id %d seen %t assured %t tcp %d", e.Protocol, e.Source, e.Destination,
			e.ReplySource, e.ReplyDestination, e.Zone, e.ID, e.SeenReply, e.Assured, e.TCPState))
		return nil
	}))
	slices.Sort(out)
	return out
}

// dumped returns what another library reads, in the same words.
func (n *node) dumped(t *testing.T) []string {
	t.Helper()
	all, err := n.list.Dump(nil)
	must(t, err)
	var out []string
	for _, f := range all {
		ends := func(tuple conntrack.Tuple) string {
			p := tuple.Proto
			src, dst := p.SourcePort, p.DestinationPort
			if p.ICMPv4 || p.ICMPv6 {
				src, dst = p.ICMPID, uint16(p.ICMPType)<<8|uint16(p.ICMPCode)
			}
			return fmt.Sprintf("%v > %v", netip.AddrPortFrom(tuple.IP.SourceAddress, src), netip.AddrPortFrom(tuple.IP.DestinationAddress, dst))
		}
		var state uint8
		if f.ProtoInfo.TCP != nil {
			state = f.ProtoInfo.TCP.State
		}
		out = append(out, fmt.Sprintf("%d %s reply %s zone %d id %d seen %t assured %t tcp %d", f.TupleOrig.Proto.Protocol, ends(f.TupleOrig),
			ends(f.TupleReply), f.Zone, f.ID, f.Status.SeenReply(), f.Status.Assured(), state))
	}
	slices.Sort(out)
	return out
}

// TestList compares the listing of a table with an entry of every kind with that of another
// library, and then what is listed for some addresses.
func TestList(t *testing.T) {
	n := newNode(t)
	n.entries(t)
	every := n.listed(t, SelectAll())
	if want := n.dumped(t); !slices.Equal(every, want) {
		t.Fatalf("listed:\n%s\nwant:\n%s", strings.Join(every, "\n"), strings.Join(want, "\n"))
	}
	for _, word := range []string{
		"6 192.0.2.1:", " tcp 3", "17 192.0.2.1:4900 > 10.1.0.1:5353 reply 10.1.0.1:5353 > 10.1.0.2:4901 ", "1 192.0.2.1:77 > 10.1.0.1:2048 reply 10.1.0.1:77 > 192.0.2.1:0 ",
		"58 [2001:db8::1]:78 > [fd00:1::1]:32768 reply [fd00:1::1]:78 > [2001:db8::1]:33024 ", " zone 7 ", "> 10.96.0.12:53 reply 10.96.0.12:53 > 192.0.2.1:4300 zone 0 id",
	} {
		if !slices.ContainsFunc(every, func(e string) bool { return strings.Contains(e, word) }) {
			t.Errorf("no entry has %q:\n%s", word, strings.Join(every, "\n"))
		}
	}
	for _, tt := range []struct {
		name string
		// addrs are separated by spaces.
		addrs  string
		passes int
	}{
		{"none", "", 0},
		{"one backend, filtered", "10.1.0.1", 2},
		{"source, filtered", "192.0.2.1", 2},
		{"not translated", "10.96.0.12", 2},
		{"before translation only", "10.96.0.10", 2},
		{"both ends", "192.0.2.1 10.1.0.1 10.1.0.2", 6},
		{"mapped", "::ffff:10.1.0.2", 2},
		{"many", "10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5 10.1.0.6", 1},
		{"IPv6", "fd00:1::1", 1},
		{"both families", "fd00:1::1 10.1.0.2", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addrs := addresses(tt.addrs)
			var want []string
			for _, e := range every {
				if slices.ContainsFunc(addrs, func(a netip.Addr) bool { return isEnd(e, a.Unmap()) }) {
					want = append(want, e)
				}
			}
			before := n.conn.Passes()
			if got := n.listed(t, Select(addrs)); !slices.Equal(got, want) {
				t.Errorf("listed:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if got := n.conn.Passes() - before; got != uint64(tt.passes) { //nolint:gosec // small
				t.Errorf("%d passes, want %d", got, tt.passes)
			}
			// A kernel that cannot filter by replies is asked for all.
			n.conn.reply = false
			if got := n.listed(t, Select(addrs)); !slices.Equal(got, want) {
				t.Errorf("without filters: listed:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			n.conn.reply = true
		})
	}
}

// isEnd reports whether an entry in words has an address as its source or reply source.
func isEnd(entry string, a netip.Addr) bool {
	addr := a.String()
	if a.Is6() {
		addr = "[" + addr + "]"
	}
	_, source, _ := strings.Cut(entry, " ")
	_, reply, _ := strings.Cut(entry, "reply ")
	return strings.HasPrefix(source, addr+":") || strings.HasPrefix(reply, addr+":")
}

func addresses(words string) []netip.Addr {
	var out []netip.Addr
	for _, w := range strings.Fields(words) {
		out = append(out, netip.MustParseAddr(w))
	}
	return out
}

// TestListStops ends listings early. The next one is complete.
func TestListStops(t *testing.T) {
	n := newNode(t)
	n.entries(t)
	want := n.listed(t, SelectAll())
	stop := errors.New("stop")
	if err := n.conn.List(t.Context(), SelectAll(), func(*Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("List = %v, want the error of the function", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := n.conn.List(ctx, SelectAll(), func(*Entry) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("List = %v, want that of the context", err)
	}
	if err := n.conn.List(ctx, SelectAll(), func(*Entry) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("List = %v, want that of the context", err)
	}
	if got := n.listed(t, SelectAll()); !slices.Equal(got, want) {
		t.Errorf("listed:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestDelete deletes every entry by its identity, one at a time.
func TestDelete(t *testing.T) {
	n := newNode(t)
	tcp := n.entries(t)
	var all []Entry
	keep := func(e *Entry) error { all = append(all, *e); return nil }
	must(t, n.conn.List(t.Context(), SelectAll(), keep))
	tcp.check(t)
	// With another id the tuple is that of another flow.
	others := slices.Clone(all)
	for i := range others {
		others[i].ID++
	}
	if deleted, err := n.conn.Delete(t.Context(), others); deleted != 0 || err != nil {
		t.Errorf("Delete of other ids = %d, %v; want 0", deleted, err)
	}
	// present returns whether each entry is there. A late packet may make one again: with another
	// id, but for TCP perhaps in the same memory.
	present := func() (there []bool) {
		table := strings.Join(n.dumped(t), "\n")
		for _, e := range all {
			there = append(there, e.Protocol == unix.IPPROTO_TCP || strings.Contains(table, fmt.Sprintf(" id %d ", e.ID)))
		}
		return there
	}
	want := slices.Repeat([]bool{true}, len(all))
	if got := present(); !slices.Equal(got, want) {
		t.Fatalf("entries left: %v, want all", got)
	}
	for i := range all {
		// Only what identifies an entry counts.
		e := all[i]
		e.ReplySource, e.ReplyDestination, e.Assured, e.SeenReply, e.TCPState = netip.AddrPort{}, netip.AddrPort{}, false, false, 0
		if deleted, err := n.conn.Delete(t.Context(), []Entry{e}); deleted != 1 || err != nil {
			t.Errorf("Delete of %+v = %d, %v; want 1", e, deleted, err)
		}
		want[i] = e.Protocol == unix.IPPROTO_TCP
		if got := present(); !slices.Equal(got, want) {
			t.Fatalf("entries left: %v, want %v", got, want)
		}
	}
	// They are gone, but for a TCP entry that was made again.
	all = slices.DeleteFunc(all, func(e Entry) bool { return e.Protocol == unix.IPPROTO_TCP })
	if deleted, err := n.conn.Delete(t.Context(), all); deleted != 0 || err != nil {
		t.Errorf("Delete again = %d, %v; want 0", deleted, err)
	}
}

// TestDeleteMany deletes several batches, among which are entries that do not exist and some
// that the kernel rejects. A listing that waits does not delay it.
func TestDeleteMany(t *testing.T) {
	n := newNode(t)
	n.ns.Echo(t, "10.1.0.1:5353")
	const flows = 2*deleteBatch + 9
	for i := range flows {
		n.shout(t, fmt.Sprintf("%s:%d", clientAddr, 20000+i), "10.1.0.1:5353")
	}
	listing, done := make(chan struct{}), make(chan struct{})
	var all []Entry
	if err := n.conn.List(t.Context(), Select(addresses(clientAddr)), func(e *Entry) error { all = append(all, *e); return nil }); err != nil || len(all) != flows {
		t.Fatalf("List finds %d flows, %v; want %d", len(all), err, flows)
	}
	release := make(chan struct{})
	go func() {
		defer close(done)
		first := true
		_ = n.conn.List(context.Background(), SelectAll(), func(*Entry) error {
			if first {
				first = false
				close(listing)
				<-release
			}
			return nil
		})
	}()
	<-listing
	var mixed []Entry
	for _, e := range all {
		gone := e
		gone.Source = netip.AddrPortFrom(e.Source.Addr(), e.Source.Port()+10_000)
		mixed = append(mixed, gone, e)
	}
	deleted, err := n.conn.Delete(t.Context(), mixed)
	close(release)
	<-done
	if deleted != flows || err != nil {
		t.Errorf("Delete = %d, %v; want %d", deleted, err, flows)
	}
	if got := n.dumped(t); len(got) != 0 {
		t.Errorf("entries are left:\n%s", strings.Join(got, "\n"))
	}

	for name, e := range map[string]Entry{
		"nothing":  {},
		"families": {Protocol: unix.IPPROTO_UDP, Source: ap("10.1.0.1:1"), Destination: ap("[fd00::1]:1")},
		"half":     {Protocol: unix.IPPROTO_UDP, Source: ap("10.1.0.1:1")},
	} {
		if deleted, err := n.conn.Delete(t.Context(), append(slices.Clone(all), e)); deleted != 0 || !errors.Is(err, ErrEntry) || !strings.Contains(err.Error(), fmt.Sprint(flows+1)) {
			t.Errorf("%s: Delete = %d, %v; want ErrEntry with its position", name, deleted, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if deleted, err := n.conn.Delete(ctx, all); deleted != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Delete = %d, %v; want the context's error", deleted, err)
	}
}

// TestReusedTuple deletes by what was listed before the same addresses and ports were used
// again: the new flow stays.
func TestReusedTuple(t *testing.T) {
	n := newNode(t)
	n.ns.Echo(t, "10.1.0.1:5353")
	var old []Entry
	// The kernel may reuse the memory, and so the id, of an entry that is gone: keep others between.
	for range 50 {
		n.ask(t, clientAddr+":4000", "10.1.0.1:5353")
		var present []Entry
		if err := n.conn.List(t.Context(), Select(addresses(clientAddr)), func(e *Entry) error { present = append(present, *e); return nil }); err != nil || len(present) != 1 {
			t.Fatalf("List finds %v, %v", present, err)
		}
		stale := slices.DeleteFunc(slices.Clone(old), func(e Entry) bool { return e.ID == present[0].ID })
		if deleted, err := n.conn.Delete(t.Context(), stale); deleted != 0 || err != nil {
			t.Fatalf("Delete of %d flows from before = %d, %v; want 0", len(stale), deleted, err)
		}
		if len(stale) > 0 {
			return
		}
		old = append(old, present...)
		if deleted, err := n.conn.Delete(t.Context(), present); deleted != 1 || err != nil {
			t.Fatalf("Delete = %d, %v; want 1", deleted, err)
		}
	}
	t.Skip("the kernel reused the same memory 50 times")
}
