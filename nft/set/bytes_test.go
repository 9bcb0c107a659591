package set

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
)

// TestUnpack: elements in bytes are the elements that their text packs to.
func TestUnpack(t *testing.T) {
	interval := []string{"interval"}
	for _, test := range []struct {
		set   nft.Set
		texts []string
	}{
		{nft.Set{Type: "ipv4_addr"}, []string{"10.0.0.1", "0.0.0.0"}},
		{nft.Set{Type: "ipv6_addr . inet_proto . inet_service"}, []string{"fd00::1 . tcp . 80", "::1 . udp . 53"}},
		{nft.Set{Type: "mark"}, []string{"0x102"}},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, []string{"10.0.0.0/8", "192.0.2.1", "192.0.2.8-192.0.2.11"}},
		{nft.Set{Type: "ipv4_addr . inet_service . mark", Flags: interval}, []string{"10.0.0.0/8 . 80-90 . 1-256"}},
		{nft.Set{Type: "ipv4_addr : ipv4_addr . inet_service"}, []string{"10.0.0.1 : 10.1.0.1 . 8080", "10.0.0.2 : 10.1.0.2 . 8080"}},
		{nft.Set{TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"}, []string{"10.96.0.1 . tcp . 80 . 1000003 : 10.1.0.1 . 8080"}},
	} {
		s := mustSet(t, test.set)
		var keys, data []byte
		var want []Element
		for _, text := range test.texts {
			key, value, _ := strings.Cut(text, " : ")
			e, err := s.Pack(nft.Element{Key: key, Value: value})
			if err != nil {
				t.Fatal(err)
			}
			keys, data, want = append(append(keys, e.Key...), e.KeyEnd...), append(data, e.Data...), append(want, e)
		}
		got, err := s.Unpack(len(want), keys, data)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s%s: %d elements, %v", test.set.Type, test.set.TypeOf, len(got), err)
		}
		gone, err := UnpackKeys(s, len(want), keys)
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q unpacks to %+v, want %+v", test.texts[i], got[i], want[i])
			}
			if err != nil || gone[i].Key != want[i].Key || gone[i].KeyEnd != want[i].KeyEnd || gone[i].Data != "" {
				t.Errorf("the key of %q unpacks to %+v (%v)", test.texts[i], gone[i], err)
			}
		}
	}
}

func TestUnpackErrors(t *testing.T) {
	interval := []string{"interval"}
	for _, test := range []struct {
		set        nft.Set
		n          int
		keys, data string
		want       string
	}{
		{nft.Set{Name: "s", Type: "ipv4_addr"}, 1, "\x0a\x00\x00", "", "packed elements of set s: its keys have 3 bytes: want 1 times 4"},
		{nft.Set{Type: "ipv4_addr"}, 3, "\x0a\x00\x00\x01", "", "want 3 times 4"},
		{nft.Set{Type: "ipv4_addr"}, -1, "\x0a\x00\x00\x01", "", "want -1 times 4"},
		{nft.Set{Type: "ipv4_addr"}, 1, "\x0a\x00\x00\x01", "x", "its values have 1 bytes: want 1 times 0"},
		{nft.Set{Type: "ipv4_addr : mark"}, 1, "\x0a\x00\x00\x01", "", "its values have 0 bytes: want 1 times 4"},
		{nft.Set{Type: "ipv4_addr . inet_proto"}, 1, "\x0a\x00\x00\x01\x06\x00\x01\x00", "", "element 1: bytes between its parts are not zero"},
		{nft.Set{Type: "ipv4_addr : ipv4_addr . inet_service"}, 1, "\x0a\x00\x00\x01", "\x0a\x00\x00\x01\x00\x50\x01\x00", "not zero"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, 1, "\x0a\x00\x00\x02\x0a\x00\x00\x01", "", "the range ends before it begins"},
		{nft.Set{Type: "ipv4_addr . inet_service", Flags: interval}, 1, "\x0a\x00\x00\x01\x00\x51\x00\x00\x0a\x00\x00\x01\x00\x50\x00\x00", "", "the range ends before it begins"},
		{nft.Set{Type: "ifname"}, 0, "", "", "type ifname has no packed form: give the elements as text"},
		{nft.Set{Type: "ipv4_addr . dscp"}, 0, "", "", "type dscp has no packed form"},
		{nft.Set{Type: "inet_service"}, 0, "", "", "a key of 2 bytes has no packed form"},
		{nft.Set{Type: "ipv4_addr : verdict"}, 0, "", "", "its values have no packed form"},
		{nft.Set{Type: "ipv4_addr : interval ipv4_addr"}, 0, "", "", "its values have no packed form"},
	} {
		got, err := mustSet(t, test.set).Unpack(test.n, []byte(test.keys), []byte(test.data))
		if err == nil || !strings.Contains(err.Error(), test.want) || got != nil {
			t.Errorf("%s: %d elements of %q, %q unpack to %v (%v), want the error %q", test.set.Type, test.n, test.keys, test.data, got, err, test.want)
		}
	}
	s := mustSet(t, nft.Set{Type: "ipv4_addr : verdict"})
	if e, err := UnpackKeys(s, 1, []byte("\x0a\x00\x00\x01")); err != nil || s.FormatKey(e[0]) != "10.0.0.1" {
		t.Errorf("a key of a map of verdicts unpacks to %v (%v)", e, err)
	}
}

// FuzzUnpack: elements of any bytes are refused, or print as text that packs to them.
func FuzzUnpack(f *testing.F) {
	sets := []*Set{
		mustSet(f, nft.Set{TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"}),
		mustSet(f, nft.Set{Type: "ipv6_addr . mark", Flags: []string{"interval"}}),
		mustSet(f, nft.Set{Type: "ipv4_addr", Flags: []string{"interval"}}),
		mustSet(f, nft.Set{Type: "ether_addr : ipv6_addr"}),
	}
	for i, s := range sets {
		f.Add(uint8(i), make([]byte, 2*int(s.Key.Len)), make([]byte, s.Data.Len))
	}
	f.Fuzz(func(t *testing.T, which uint8, keys, data []byte) {
		s := sets[int(which)%len(sets)]
		width := int(s.Key.Len)
		if s.Flags&FlagInterval != 0 {
			width *= 2
		}
		all, err := s.Unpack(len(keys)/width, keys, data)
		if err != nil {
			return
		}
		for _, e := range all {
			again, err := s.Pack(nft.Element{Key: s.FormatKey(e), Value: s.FormatData(e)})
			if err != nil || again != e {
				t.Errorf("%q prints as %s : %s, which packs to %q (%v)", e, s.FormatKey(e), s.FormatData(e), again, err)
			}
		}
	})
}
