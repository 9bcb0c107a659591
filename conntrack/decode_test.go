package conntrack

import (
	"slices"
	"testing"

	"github.com/ti-mo/netfilter"
)

// entry is a message of a dump as the kernel sends it, without what no one
// reads.
func entry(t testing.TB, proto byte, orig, reply [2]string) []byte {
	t.Helper()
	tuple := func(kind uint16, ends [2]string) netfilter.Attribute {
		src, dst := ap(ends[0]), ap(ends[1])
		kinds := [2]uint16{ctaIPv4Src, ctaIPv4Dst}
		if src.Addr().Is6() {
			kinds = [2]uint16{ctaIPv6Src, ctaIPv6Dst}
		}
		return netfilter.Attribute{Type: kind, Nested: true, Children: []netfilter.Attribute{
			{Type: ctaTupleIP, Nested: true, Children: []netfilter.Attribute{
				{Type: kinds[0], Data: src.Addr().AsSlice()}, {Type: kinds[1], Data: dst.Addr().AsSlice()}}},
			{Type: ctaTupleProto, Nested: true, Children: []netfilter.Attribute{
				{Type: ctaProtoNum, Data: []byte{proto}},
				{Type: ctaProtoSrcPort, Data: netfilter.Uint16Bytes(src.Port())},
				{Type: ctaProtoDstPort, Data: netfilter.Uint16Bytes(dst.Port())}}},
			{Type: 3, Data: netfilter.Uint16Bytes(7)}}}
	}
	msg, err := netfilter.MarshalNetlink(netfilter.Header{}, []netfilter.Attribute{
		tuple(ctaTupleOrig, orig), tuple(ctaTupleReply, reply), {Type: 3, Data: make([]byte, 4)}})
	if err != nil {
		t.Fatal(err)
	}
	return msg.Data
}

// TestDecodeFlow decodes entries of which a matcher selects the UDP flows to a removed backend.
func TestDecodeFlow(t *testing.T) {
	m := matchChanges([]Stale{
		{Addr: ap("10.96.0.10:53").Addr(), Port: 53, Removed: aps("10.1.0.1:5353")},
		{Addr: ap("[fd00::2]:2").Addr(), Port: 2, Removed: aps("[fd00::3]:3")},
	}, false)
	for _, tt := range []struct {
		proto       byte
		orig, reply [2]string
		want        bool
	}{
		{17, [2]string{"10.0.0.1:4000", "10.96.0.10:53"}, [2]string{"10.1.0.1:5353", "10.0.0.1:4000"}, true},
		{17, [2]string{"10.0.0.1:4000", "10.96.0.10:53"}, [2]string{"10.1.0.2:5353", "10.0.0.1:4000"}, false},
		{17, [2]string{"[fd00::1]:1", "[fd00::2]:2"}, [2]string{"[fd00::3]:3", "[fd00::1]:1"}, true},
		{6, [2]string{"10.0.0.1:4000", "10.96.0.10:53"}, [2]string{"10.1.0.1:5353", "10.0.0.1:4000"}, false},
	} {
		var e Entry
		if got := e.decode(entry(t, tt.proto, tt.orig, tt.reply), m); got != tt.want {
			t.Errorf("protocol %d, %v, reply %v: selected = %v, want %v", tt.proto, tt.orig, tt.reply, got, tt.want)
		}
		if tt.want && (e.Destination != ap(tt.orig[1]) || e.ReplySource != ap(tt.reply[0]) || e.Zone != 7) {
			t.Errorf("decoded %+v, want %v, reply %v", e, tt.orig, tt.reply)
		}
	}
}

func TestDecodeEntryAllocates(t *testing.T) {
	msg := entry(t, 17, [2]string{"10.0.0.1:4000", "10.96.0.10:53"}, [2]string{"10.1.0.1:5353", "10.0.0.1:4000"})
	var e Entry
	other := matchChanges([]Stale{{Addr: ap("10.96.0.11:53").Addr(), Port: 53, Removed: aps("10.1.0.1:5353")}}, false)
	for s, want := range map[selector]bool{SelectAll(): true, Select(addresses("10.1.0.1")): true, Select(addresses("10.96.0.10 fd00::1")): false, other: false} {
		if n := testing.AllocsPerRun(100, func() {
			if got := e.decode(msg, s); got != want {
				t.Fatalf("decode = %v, want %v", got, want)
			}
		}); n != 0 {
			t.Errorf("an entry costs %v allocations, want 0", n)
		}
	}
}

// FuzzDecodeEntry decodes what may be an entry. What is decoded has two tuples of one family each,
// and can be deleted.
func FuzzDecodeEntry(f *testing.F) {
	msg := entry(f, 17, [2]string{"10.0.0.1:4000", "10.96.0.10:53"}, [2]string{"10.1.0.1:5353", "10.0.0.1:4000"})
	f.Add(msg)
	f.Add(msg[:len(msg)-9])
	f.Add(entry(f, 6, [2]string{"[fd00::1]:1", "[fd00::2]:2"}, [2]string{"[fd00::3]:3", "[fd00::1]:1"}))
	f.Add([]byte{2, 0, 0, 0, 3, 0, 1, 0})
	all, some := SelectAll(), Select(addresses("10.1.0.1 fd00::1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := slices.Clone(b)
		var e, selected Entry
		ok := e.decode(b, all)
		if some := selected.decode(b, some); some && (!ok || e != selected) {
			t.Fatalf("decode of some = %+v, of all = %+v", selected, e)
		}
		if !slices.Equal(in, b) {
			t.Fatal("input changed")
		}
		if !ok {
			return
		}
		if !e.Source.IsValid() || !e.ReplyDestination.IsValid() || e.Source.Addr().Is4() != e.Destination.Addr().Is4() || e.ReplySource.Addr().Is4() != e.ReplyDestination.Addr().Is4() {
			t.Fatalf("decoded %+v", e)
		}
		if _, err := e.deletion(); err != nil {
			t.Fatalf("%+v cannot be deleted: %v", e, err)
		}
	})
}
