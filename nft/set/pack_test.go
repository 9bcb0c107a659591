package set

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
)

// mustSet compiles the declaration of a set or map s.
func mustSet(t testing.TB, s nft.Set) *Set {
	t.Helper()
	out, err := compileEither(nft.FamilyIP, s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPack(t *testing.T) {
	s := mustSet(t, nft.Set{TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"})
	got, err := s.Pack(nft.Element{Key: "10.96.0.1 . tcp . 80 . 3", Value: "10.1.0.1 . 8080", Comment: "web"})
	want := Element{
		Key:     "\x0a\x60\x00\x01\x06\x00\x00\x00\x00\x50\x00\x00\x03\x00\x00\x00",
		Data:    "\x0a\x01\x00\x01\x1f\x90\x00\x00",
		Comment: "web",
	}
	if err != nil || got != want {
		t.Errorf("packs to %+q (%v), want %+q", got, err, want)
	}
	if got, err := s.Pack(nft.Element{Key: " 10.96.0.1  .\ttcp . http . 0x3 ", Value: "10.1.0.1 . 8080", Comment: "web"}); err != nil || got != want {
		t.Errorf("other blanks pack to %+q (%v)", got, err)
	}
	quoted := mustSet(t, nft.Set{Type: "ifname . mark . ifname"})
	if got, err := quoted.Pack(nft.Element{Key: `"a . b" . 1	.	"c . d"`}); err != nil || !strings.HasPrefix(got.Key, "a . b\x00") || !strings.Contains(got.Key, "c . d\x00") {
		t.Errorf("dots in quotes pack to %+q (%v)", got, err)
	}
	if allocs := testing.AllocsPerRun(100, func() {
		_, err = s.Pack(nft.Element{Key: "10.96.0.1 . tcp . 80 . 3", Value: "10.1.0.1 . 8080"})
	}); allocs > 1 || err != nil {
		t.Errorf("Pack makes %v allocations (%v)", allocs, err)
	}
}

// TestPackWithoutParts packs elements of a declaration that was put together
// from the exported fields, as a dump of the kernel gives it.
func TestPackWithoutParts(t *testing.T) {
	s := mustSet(t, nft.Set{Type: "ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service"})
	plain := &Set{
		Name: "s", Map: true, Flags: FlagMap,
		Key:  Type{ID: s.Key.ID, Len: s.Key.Len, Fields: s.Key.Fields, Names: s.Key.Names},
		Data: Type{ID: s.Data.ID, Len: s.Data.Len, Fields: s.Data.Fields, Names: s.Data.Names},
	}
	e := nft.Element{Key: "10.0.0.1 . udp . 53", Value: "10.1.0.1 . 5353"}
	want, err := s.Pack(e)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := plain.Pack(e); err != nil || got != want {
		t.Errorf("packs to %+q (%v), want %+q", got, err, want)
	}
	if key, data := plain.FormatKey(want), plain.FormatData(want); key != "10.0.0.1 . udp . 53" || data != "10.1.0.1 . 5353" {
		t.Errorf("formats to %s : %s", key, data)
	}
	if got := (&Set{}).FormatKey(Element{Key: "ab"}); got != "0x6162" {
		t.Errorf("a key without a type formats to %s", got)
	}
}

func TestPackErrors(t *testing.T) {
	interval := []string{"interval"}
	for _, test := range []struct {
		set  nft.Set
		elem nft.Element
		want string
	}{
		{nft.Set{Type: "ipv4_addr"}, nft.Element{Key: "10.0.0.0/8"}, "need flags interval"},
		{nft.Set{Type: "ipv4_addr"}, nft.Element{Key: "10.0.0.1-10.0.0.2"}, "need flags interval"},
		{nft.Set{Type: "inet_service"}, nft.Element{Key: "1-2"}, "need flags interval"},
		{nft.Set{Type: "ifname"}, nft.Element{Key: "eth*"}, "flags interval"},
		{nft.Set{Type: "ipv4_addr"}, nft.Element{Key: "x"}, "is not an IPv4 address"},
		{nft.Set{Type: "ipv4_addr"}, nft.Element{Key: ""}, "is not an IPv4 address"},
		{nft.Set{Type: "ipv4_addr"}, nft.Element{Key: "1.1.1.1", Stateful: []string{"counter"}}, "the set has no statements"},
		{nft.Set{Type: "ipv4_addr", Stateful: []string{"counter"}}, nft.Element{Key: "1.1.1.1", Stateful: []string{"limit rate 1/second"}}, "has \"counter\" in its place"},
		{nft.Set{Type: "ipv4_addr", Stateful: []string{"counter"}}, nft.Element{Key: "1.1.1.1", Stateful: []string{"counter", "counter"}}, "2 statements, the set 1"},
		{nft.Set{Type: "ipv4_addr", Stateful: []string{"counter"}}, nft.Element{Key: "1.1.1.1", Stateful: []string{"log"}}, "want counter"},
		{nft.Set{Type: "ipv4_addr"}, nft.Element{Key: "1.1.1.1", Expires: time.Second}, "needs flag timeout"},
		{nft.Set{Type: "ipv4_addr", Flags: []string{"timeout"}}, nft.Element{Key: "1.1.1.1", Expires: time.Second}, "neither the element nor the set has a timeout"},
		{nft.Set{Type: "ipv4_addr", Timeout: time.Second}, nft.Element{Key: "1.1.1.1", Expires: time.Minute}, "the timeout is shorter"},
		{nft.Set{Type: "ipv4_addr"}, nft.Element{Key: "1.1.1.1", Value: "1"}, "this is a set, not a map"},
		{nft.Set{Type: "ipv4_addr"}, nft.Element{Key: "1.1.1.1", Timeout: time.Second}, "the set needs flag timeout"},
		{nft.Set{Type: "ipv4_addr", Flags: []string{"timeout"}}, nft.Element{Key: "1.1.1.1", Timeout: 1}, "the smallest is 1ms"},
		{nft.Set{Type: "ipv4_addr"}, nft.Element{Key: "1.1.1.1", Comment: strings.Repeat("x", 129)}, "at most 128"},
		{nft.Set{Type: "ipv4_addr : mark"}, nft.Element{Key: "1.1.1.1"}, "a map's element is KEY : VALUE"},
		{nft.Set{Type: "ipv4_addr : mark"}, nft.Element{Key: "1.1.1.1", Value: "x"}, `value "x": parse mark`},
		{nft.Set{Type: "ipv4_addr : mark"}, nft.Element{Key: "1.1.1.1", Value: "1-2"}, "parse mark"},
		{nft.Set{Type: "ipv4_addr : verdict"}, nft.Element{Key: "1.1.1.1", Value: "allow"}, "want accept, drop"},
		{nft.Set{Type: "ipv4_addr . inet_service"}, nft.Element{Key: "1.1.1.1"}, "1 parts: want 2, ipv4_addr . inet_service"},
		{nft.Set{Type: "ipv4_addr . inet_service"}, nft.Element{Key: "1.1.1.1 . 1 . 2"}, "3 parts: want 2"},
		{nft.Set{Type: "ipv4_addr . inet_service"}, nft.Element{Key: "1.1.1.1.80"}, "1 parts: want 2"},
		{nft.Set{Type: "ipv4_addr . inet_service"}, nft.Element{Key: "1.1.1.1 . x"}, "part 2: parse inet_service"},
		{nft.Set{Type: "ipv4_addr . inet_service", Flags: interval}, nft.Element{Key: "1.1.1.1 . x"}, "part 2: parse inet_service"},
		{nft.Set{Type: "ipv4_addr . inet_service", Flags: interval}, nft.Element{Key: "1.1.1.1 . 1 . 1"}, "3 parts: want 2"},
		{nft.Set{Type: "ipv4_addr . inet_service", Flags: interval}, nft.Element{Key: "1.1.1.1"}, "1 parts: want 2"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, nft.Element{Key: "1.1.1.1/33"}, "want 0 to 32"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, nft.Element{Key: "1.1.1.1/x"}, "want 0 to 32"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, nft.Element{Key: "1.1.1.2-1.1.1.1"}, "ends before it begins"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, nft.Element{Key: "1.1.1.2-x"}, "is not an IPv4 address"},
		{nft.Set{Type: "inet_service", Flags: interval}, nft.Element{Key: "1-"}, "parse inet_service"},
		{nft.Set{Type: "inet_service", Flags: interval}, nft.Element{Key: "-"}, "parse inet_service"},
		{nft.Set{Type: "inet_service", Flags: interval}, nft.Element{Key: ""}, "parse inet_service"},
		{nft.Set{Type: "icmp_type", Flags: interval}, nft.Element{Key: "echo-requests"}, "unknown name"},
		{nft.Set{Type: "dscp", Flags: interval}, nft.Element{Key: "cs1/3"}, "prefixes are not possible"},
		{nft.Set{Type: "ifname", Flags: interval}, nft.Element{Key: "a-much-too-long-name*"}, "1 to 15 bytes"},
		{nft.Set{TypeOf: "ip id"}, nft.Element{Key: "65536"}, "the greatest is 65535"},
		{nft.Set{TypeOf: "fib daddr oifname"}, nft.Element{Key: "seventeen-letters"}, "want at most 16"},
		{nft.Set{Type: "ipv4_addr : interval ipv4_addr"}, nft.Element{Key: "1.1.1.1", Value: "1.1.1.2-1.1.1.1"}, "ends before"},
	} {
		s := mustSet(t, test.set)
		got, err := s.Pack(test.elem)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %+v packs to %q (%v), want the error %q", test.set.Type, test.elem, got, err, test.want)
		} else if !strings.HasPrefix(err.Error(), "pack element ") {
			t.Errorf("error %q does not say what failed", err)
		}
		if got != (Element{}) {
			t.Errorf("%s %+v: an error and %q", test.set.Type, test.elem, got)
		}
	}
}

func TestNormalize(t *testing.T) {
	interval := []string{"interval"}
	for _, test := range []struct {
		set  nft.Set
		in   []string
		want string // elements, or the error
	}{
		{nft.Set{Type: "ipv4_addr"}, []string{"2.2.2.2", "1.1.1.1", "2.2.2.2"}, "1.1.1.1, 2.2.2.2"},
		{nft.Set{Type: "ipv4_addr : mark"}, []string{"1.1.1.1 : 1", "1.1.1.1 : 1"}, "1.1.1.1 : 0x00000001"},
		{nft.Set{Type: "ipv4_addr : mark"}, []string{"1.1.1.1 : 1", "1.1.1.1 : 2"}, "the key has two values: 0x00000001 and 0x00000002"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, []string{"10.0.0.0/8", "10.0.0.0/8"}, "10.0.0.0/8"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, []string{"11.0.0.0/8", "10.0.0.0/8"}, "10.0.0.0/8, 11.0.0.0/8"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, []string{"10.0.0.0/8", "10.1.0.0/16"}, `"10.1.0.0/16" of set s: it overlaps 10.0.0.0/8`},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, []string{"10.0.0.5", "10.0.0.0/8"}, "overlaps"},
		{nft.Set{Type: "ipv4_addr", Flags: interval, AutoMerge: true}, []string{"10.0.0.0/8", "11.0.0.0/8", "10.1.0.0/16", "1.1.1.1"}, "1.1.1.1, 10.0.0.0/7"},
		{nft.Set{Type: "inet_service", Flags: interval, AutoMerge: true}, []string{"5-9", "1-4", "20", "7-12"}, "1-12, 20"},
		{nft.Set{Type: "mark : mark", Flags: interval, AutoMerge: true}, []string{"1-4 : 1", "5-9 : 2", "10-11 : 2"}, "0x00000001-0x00000004 : 0x00000001, 0x00000005-0x00000009 : 0x00000002, 0x0000000a/31 : 0x00000002"},
		{nft.Set{Type: "mark : mark", Flags: interval, AutoMerge: true}, []string{"1-4 : 1", "3-9 : 2"}, "overlaps"},
		{nft.Set{Type: "ipv4_addr . inet_service", Flags: interval}, []string{"10.0.0.0/8 . 80", "10.0.0.0/8 . 81", "10.0.0.0/8 . 80"}, "10.0.0.0/8 . 80, 10.0.0.0/8 . 81"},
		{nft.Set{Type: "ipv4_addr . inet_service", Flags: interval}, []string{"10.0.0.0/8 . 80", "10.5.0.0/16 . 1-100"}, "overlaps"},
		{nft.Set{Type: "ipv4_addr . inet_service", Flags: interval}, []string{"10.0.0.0/8 . 80", "10.5.0.0/16 . 81-100"}, "10.0.0.0/8 . 80, 10.5.0.0/16 . 81-100"},
		{nft.Set{Type: "ipv4_addr . mark : mark", Flags: interval}, []string{"10.0.0.0/8 . 1 : 1", "10.0.0.0/8 . 1 : 2"}, "two values"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, nil, ""},
	} {
		s := mustSet(t, test.set)
		var in []Element
		for _, text := range test.in {
			key, value, _ := strings.Cut(text, " : ")
			e, err := s.Pack(nft.Element{Key: key, Value: value})
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, e)
		}
		before := slices.Clone(in)
		out, err := s.Normalize(in)
		var words []string
		for _, e := range out {
			word := s.FormatKey(e)
			if data := s.FormatData(e); data != "" {
				word += " : " + data
			}
			words = append(words, word)
		}
		got := strings.Join(words, ", ")
		if err != nil {
			got = err.Error()
		}
		if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("%s %v gives %s, want %s", test.set.Type, test.in, got, test.want)
		}
		if !slices.Equal(in, before) {
			t.Errorf("Normalize changed its argument")
		}
	}
}

func TestVerdictData(t *testing.T) {
	for _, v := range []Verdict{
		{Code: datatype.VerdictAccept}, {Code: datatype.VerdictDrop}, {Code: datatype.VerdictReturn},
		{Code: datatype.VerdictJump, Chain: "a"}, {Code: datatype.VerdictGoto, Chain: "pick-3"},
	} {
		got, err := ParseVerdictData(VerdictData(v))
		if err != nil || got != v {
			t.Errorf("%s reads back as %s (%v)", v, got, err)
		}
		if b, err := datatype.Verdict.Parse(v.String()); err != nil || string(b) != VerdictData(v) {
			t.Errorf("%s packs to %q (%v), want %q", v, b, err, VerdictData(v))
		}
	}
	for _, data := range []string{"", "abc", VerdictData(Verdict{Code: datatype.VerdictGoto}), VerdictData(Verdict{Code: 1, Chain: "x"})} {
		if v, err := ParseVerdictData(data); err == nil {
			t.Errorf("%q reads as %s", data, v)
		}
	}
}

func FuzzPack(f *testing.F) {
	decls := []nft.Set{
		{TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"},
		{Type: "ipv4_addr . inet_proto . inet_service : verdict"},
		{Type: "ipv4_addr", Flags: []string{"interval"}},
		{Type: "ipv6_addr . mark : interval ipv4_addr", Flags: []string{"interval"}},
		{Type: "icmp_type . ifname . ct_state", Flags: []string{"interval"}},
		{Type: "ifname . time . dscp : ether_addr"},
	}
	var sets []*Set
	for _, d := range decls {
		sets = append(sets, mustSet(f, d))
	}
	for i := range sets {
		for _, seed := range [][2]string{
			{"10.96.0.1 . tcp . 80 . 3", "10.1.0.1 . 8080"}, {"10.96.0.1 . udp . domain", "goto pick-3"},
			{"10.0.0.0/8", ""}, {"10.0.0.1-10.0.0.9", ""}, {"fe80::/10 . 1-5", "10.0.0.1-10.0.0.3"},
			{"echo-request-timestamp-reply . \"eth*\" . established", ""}, {"lo . 1h30m . cs1", "00:11:22:33:44:55"},
		} {
			f.Add(uint8(i), seed[0], seed[1])
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, key, value string) {
		s := sets[int(n)%len(sets)]
		e, err := s.Pack(nft.Element{Key: key, Value: value})
		if err != nil {
			if e != (Element{}) {
				t.Fatalf("an error and %q", e)
			}
			return
		}
		// The catch-all element has an empty key.
		keyLen := int(s.Key.Len)
		if key == catchAll {
			keyLen = 0
		}
		if len(e.Key) != keyLen || !s.Verdict && len(e.Data) != int(s.Data.Len) || e.KeyEnd != "" && e.KeyEnd < e.Key && len(s.Key.Fields) == 0 {
			t.Fatalf("%q : %q packs to %+q", key, value, e)
		}
		k, v := s.FormatKey(e), s.FormatData(e)
		again, err := s.Pack(nft.Element{Key: k, Value: v})
		if err != nil || again != e {
			t.Fatalf("%q : %q packs to %+q, prints as %s : %s, reads back as %+q (%v)", key, value, e, k, v, again, err)
		}
	})
}
