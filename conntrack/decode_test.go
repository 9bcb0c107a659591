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

func TestDecodeUDP(t *testing.T) {
	orig := [2]string{"10.0.0.1:4000", "10.96.0.10:53"}
	reply := [2]string{"10.1.0.1:5353", "10.0.0.1:4000"}
	got, ok := decodeUDP(entry(t, 17, orig, reply))
	if want := (flow{dst: ap("10.96.0.10:53"), reply: ap("10.1.0.1:5353")}); !ok || got != want {
		t.Errorf("decodeUDP = %v, %v; want %v", got, ok, want)
	}
	got, ok = decodeUDP(entry(t, 17, [2]string{"[fd00::1]:1", "[fd00::2]:2"}, [2]string{"[fd00::3]:3", "[fd00::1]:1"}))
	if want := (flow{dst: ap("[fd00::2]:2"), reply: ap("[fd00::3]:3")}); !ok || got != want {
		t.Errorf("decodeUDP = %v, %v; want %v", got, ok, want)
	}
	if _, ok := decodeUDP(entry(t, 6, orig, reply)); ok {
		t.Error("decodeUDP takes a TCP flow")
	}
}

func TestDecodeUDPAllocates(t *testing.T) {
	msg := entry(t, 17, [2]string{"10.0.0.1:4000", "10.96.0.10:53"}, [2]string{"10.1.0.1:5353", "10.0.0.1:4000"})
	m := matchChanges([]Change{{Addr: ap("10.96.0.11:53").Addr(), Port: 53, Removed: aps("10.1.0.1:5353")}})
	if n := testing.AllocsPerRun(100, func() {
		f, ok := decodeUDP(msg)
		if !ok || m.remove(f) {
			t.Fatal("flow not decoded, or taken for stale")
		}
	}); n != 0 {
		t.Errorf("a flow of others costs %v allocations, want 0", n)
	}
}

func FuzzDecodeUDP(f *testing.F) {
	msg := entry(f, 17, [2]string{"10.0.0.1:4000", "10.96.0.10:53"}, [2]string{"10.1.0.1:5353", "10.0.0.1:4000"})
	f.Add(msg)
	f.Add(msg[:len(msg)-9])
	f.Add([]byte{2, 0, 0, 0, 3, 0, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := slices.Clone(b)
		got, ok := decodeUDP(b)
		if !slices.Equal(in, b) {
			t.Fatal("input changed")
		}
		if ok != (got.dst.IsValid() && got.reply.IsValid()) || !ok && got != (flow{}) {
			t.Fatalf("decodeUDP = %v, %v", got, ok)
		}
	})
}

func TestDecodeEntryAllocates(t *testing.T) {
	msg := entry(t, 6, [2]string{"10.0.0.1:4000", "10.96.0.10:53"}, [2]string{"10.1.0.1:5353", "10.0.0.1:4000"})
	var e Entry
	for s, want := range map[*Selection]bool{SelectAll(): true, Select(addresses("10.1.0.1")): true, Select(addresses("10.96.0.10 fd00::1")): false} {
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
