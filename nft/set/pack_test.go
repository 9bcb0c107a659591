package set

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// compileEither compiles the declaration of a set or map s.
func compileEither(family nft.Family, s nft.Set) (*Set, error) {
	s.Name = "s"
	if strings.Contains(s.Type+s.TypeOf, ":") {
		return CompileMap(family, (*nft.Map)(&s))
	}
	return Compile(family, &s)
}

// mustSet compiles the declaration of a set or map s.
func mustSet(s nft.Set) *Set {
	return nfttest.Must(compileEither(nft.FamilyIP, s))
}

func TestPack(t *testing.T) {
	s := mustSet(nft.Set{TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"})
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
	quoted := mustSet(nft.Set{Type: "ifname . mark . ifname"})
	if got, err := quoted.Pack(nft.Element{Key: `"a . b" . 1	.	"c . d"`}); err != nil || !strings.HasPrefix(got.Key, "a . b\x00") || !strings.Contains(got.Key, "c . d\x00") {
		t.Errorf("dots in quotes pack to %+q (%v)", got, err)
	}
	if got := (&Set{}).FormatKey(Element{Key: "ab"}); got != "0x6162" {
		t.Errorf("a key without a type formats to %s", got)
	}
	if allocs := testing.AllocsPerRun(100, func() {
		_, err = s.Pack(nft.Element{Key: "10.96.0.1 . tcp . 80 . 3", Value: "10.1.0.1 . 8080"})
	}); allocs > 1 || err != nil {
		t.Errorf("Pack makes %v allocations (%v)", allocs, err)
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
		{nft.Set{Type: "ifname"}, nft.Element{Key: "eth*"}, "flags interval"},
		{nft.Set{Type: "ipv4_addr"}, nft.Element{Key: "x"}, "is not an IPv4 address"},
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
		{nft.Set{Type: "ipv4_addr : verdict"}, nft.Element{Key: "1.1.1.1", Value: "allow"}, "want accept, drop"},
		{nft.Set{Type: "ipv4_addr . inet_service"}, nft.Element{Key: "1.1.1.1"}, "1 parts: want 2, ipv4_addr . inet_service"},
		{nft.Set{Type: "ipv4_addr . inet_service"}, nft.Element{Key: "1.1.1.1 . x"}, "part 2: parse inet_service"},
		{nft.Set{Type: "ipv4_addr . inet_service", Flags: interval}, nft.Element{Key: "1.1.1.1 . x"}, "part 2: parse inet_service"},
		{nft.Set{Type: "ipv4_addr . inet_service", Flags: interval}, nft.Element{Key: "1.1.1.1"}, "1 parts: want 2"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, nft.Element{Key: "1.1.1.1/33"}, "want 0 to 32"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, nft.Element{Key: "1.1.1.2-1.1.1.1"}, "ends before it begins"},
		{nft.Set{Type: "ipv4_addr", Flags: interval}, nft.Element{Key: "1.1.1.2-x"}, "is not an IPv4 address"},
		{nft.Set{Type: "inet_service", Flags: interval}, nft.Element{Key: "1-"}, "parse inet_service"},
		{nft.Set{Type: "icmp_type", Flags: interval}, nft.Element{Key: "echo-requests"}, "unknown name"},
		{nft.Set{Type: "dscp", Flags: interval}, nft.Element{Key: "cs1/3"}, "prefixes are not possible"},
		{nft.Set{Type: "ifname", Flags: interval}, nft.Element{Key: "a-much-too-long-name*"}, "1 to 15 bytes"},
		{nft.Set{TypeOf: "ip id"}, nft.Element{Key: "65536"}, "the greatest is 65535"},
		{nft.Set{TypeOf: "fib daddr oifname"}, nft.Element{Key: "seventeen-letters"}, "want at most 16"},
		{nft.Set{Type: "ipv4_addr : interval ipv4_addr"}, nft.Element{Key: "1.1.1.1", Value: "1.1.1.2-1.1.1.1"}, "ends before"},
	} {
		s := mustSet(test.set)
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
		s := mustSet(test.set)
		var in []Element
		for _, text := range test.in {
			key, value, _ := strings.Cut(text, " : ")
			in = append(in, nfttest.Must(s.Pack(nft.Element{Key: key, Value: value})))
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
		sets = append(sets, mustSet(d))
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

// TestPackerPacksAsSetDoes packs more elements than one string holds, and verdicts longer than
// expected.
func TestPackerPacksAsSetDoes(t *testing.T) {
	for _, m := range []nft.Map{
		{Name: "values", Type: "ipv4_addr . inet_service : ipv4_addr"},
		{Name: "verdicts", Type: "ipv4_addr . inet_service : verdict"},
		{Name: "ranges", Type: "ipv4_addr . inet_service : ipv4_addr", Flags: []string{"interval"}},
	} {
		s := nfttest.Must(CompileMap(nft.FamilyIP, &m))
		p := s.Packer(1)
		var want, got []Element
		for i := range 5000 {
			e := nft.Element{Key: fmt.Sprintf("10.0.%d.%d . 80", i>>8, i&255), Value: fmt.Sprintf("10.1.%d.%d", i>>8, i&255), Comment: fmt.Sprint(i)}
			if s.Verdict {
				e.Value = fmt.Sprintf("goto a-chain-with-a-long-name-%d", i)
			}
			a := nfttest.Must(s.Pack(e))
			b := nfttest.Must(p.Pack(e))
			want, got = append(want, a), append(got, b)
		}
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("map %s element %d is %+v, want %+v", m.Name, i, got[i], want[i])
			}
		}
		if _, err := p.Pack(nft.Element{Key: "10.0.0.1"}); err == nil {
			t.Errorf("map %s: half a key is packed", m.Name)
		}
	}
}

// For tests outside of the package.
var (
	CompileEither   = compileEither
	ExtensionFields = extensionFields
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
		s := mustSet(test.set)
		var keys, data []byte
		var want []Element
		for _, text := range test.texts {
			key, value, _ := strings.Cut(text, " : ")
			e := nfttest.Must(s.Pack(nft.Element{Key: key, Value: value}))
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
		got, err := mustSet(test.set).Unpack(test.n, []byte(test.keys), []byte(test.data))
		if err == nil || !strings.Contains(err.Error(), test.want) || got != nil {
			t.Errorf("%s: %d elements of %q, %q unpack to %v (%v), want the error %q", test.set.Type, test.n, test.keys, test.data, got, err, test.want)
		}
	}
	s := mustSet(nft.Set{Type: "ipv4_addr : verdict"})
	if e, err := UnpackKeys(s, 1, []byte("\x0a\x00\x00\x01")); err != nil || s.FormatKey(e[0]) != "10.0.0.1" {
		t.Errorf("a key of a map of verdicts unpacks to %v (%v)", e, err)
	}
}

// FuzzUnpack: elements of any bytes are refused, or print as text that packs to them.
func FuzzUnpack(f *testing.F) {
	sets := []*Set{
		mustSet(nft.Set{TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"}),
		mustSet(nft.Set{Type: "ipv6_addr . mark", Flags: []string{"interval"}}),
		mustSet(nft.Set{Type: "ipv4_addr", Flags: []string{"interval"}}),
		mustSet(nft.Set{Type: "ether_addr : ipv6_addr"}),
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
