package set

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

func TestCompileSetErrors(t *testing.T) {
	for _, test := range []struct {
		set  nft.Set
		want string
	}{
		{nft.Set{}, "no type given: want type or typeof"},
		{nft.Set{Type: "ipv4_addr", TypeOf: "ip saddr"}, "want one"},
		{nft.Set{Type: "ipv4"}, `unknown datatype "ipv4": want names such as`},
		{nft.Set{Type: "ipv4_addr ."}, `unknown datatype ""`},
		{nft.Set{Type: "integer"}, "use typeof"},
		{nft.Set{Type: "verdict"}, "verdict cannot be a part of a key"},
		{nft.Set{Type: "ipv4_addr : ipv4_addr . verdict"}, "data: verdict cannot be a part"},
		{nft.Set{Type: "mark . mark . mark . mark . mark . mark"}, "at most 5"},
		{nft.Set{Type: "ipv6_addr . ipv6_addr . ipv6_addr . ipv6_addr . mark"}, "68 bytes: the kernel takes at most 64"},
		{nft.Set{Type: "mark : interval ipv6_addr . ipv6_addr . ipv6_addr"}, "data has 96 bytes"},
		{nft.Set{TypeOf: "ip"}, "1:1"},
		{nft.Set{TypeOf: "ip nosuch"}, "nosuch"},
		{nft.Set{TypeOf: "ip saddr . meta nosuch"}, "1:17"},
		{nft.Set{TypeOf: "ip saddr . ct original proto-dst"}, "type inet_service"},
		{nft.Set{TypeOf: "ct original saddr"}, "ct original ip saddr"},
		{nft.Set{TypeOf: "10.0.0.1"}, "1:1"},
		{nft.Set{Type: "mark", Flags: []string{"fast"}}, `unknown flag "fast": want constant, interval, timeout or dynamic`},
		{nft.Set{Type: "mark", Flags: []string{"interval", "interval"}}, "given twice"},
		{nft.Set{Type: "mark", Flags: []string{"interval", "dynamic"}}, "exclude each other"},
		{nft.Set{Type: "mark", Flags: []string{"constant", "timeout"}}, "excludes timeout"},
		{nft.Set{Type: "mark", Flags: []string{"constant"}, Timeout: time.Second}, "excludes timeout"},
		{nft.Set{Type: "mark", Timeout: time.Microsecond}, "the smallest is 1ms"},
		{nft.Set{Type: "mark", Timeout: -1}, "negative"},
		{nft.Set{Type: "mark", GCInterval: time.Second}, "gc-interval needs flag timeout"},
		{nft.Set{Type: "mark", Flags: []string{"timeout"}, GCInterval: 1 << 62}, "gc-interval"},
		{nft.Set{Type: "mark", AutoMerge: true}, "auto-merge needs flag interval"},
		{nft.Set{Type: "mark", Policy: "fast"}, `unknown policy "fast"`},
		{nft.Set{Type: "mark", Comment: strings.Repeat("x", 129)}, "at most 128"},
		{nft.Set{
			TypeOf:  "numgen inc mod 2 . numgen inc mod 2 . numgen inc mod 2 : numgen inc mod 2 . numgen inc mod 2 . numgen inc mod 2",
			Comment: strings.Repeat("x", 128),
		}, "shorten the comment or use type"},
	} {
		_, err := compileEither(nft.FamilyIP, test.set)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: error %v, want %q in it", test.set, err, test.want)
		} else if !strings.HasPrefix(err.Error(), "compile set s: ") && !strings.HasPrefix(err.Error(), "compile map s: ") {
			t.Errorf("error %q does not name the set", err)
		}
	}
	if _, err := Compile(nft.FamilyIP, &nft.Set{Name: "1", Type: "mark"}); err == nil {
		t.Error("a set is named 1")
	}
	if _, err := Compile(nft.FamilyIP, &nft.Set{Name: "s", Type: "mark : mark"}); err == nil || !strings.Contains(err.Error(), "declare a map") {
		t.Errorf("a set with data gives %v", err)
	}
	if _, err := CompileMap(nft.FamilyIP, &nft.Map{Name: "s", Type: "mark"}); err == nil || !strings.Contains(err.Error(), "declare a set") {
		t.Errorf("a map without data gives %v", err)
	}
}

func TestSetEqual(t *testing.T) {
	base := nft.Set{Name: "s", Type: "ipv4_addr . mark : mark", Flags: []string{"timeout"}, Timeout: time.Hour, GCInterval: time.Minute, Size: 7, Policy: "memory", Comment: "c"}
	compile := func(change func(*nft.Set)) *Set {
		t.Helper()
		s := base
		change(&s)
		return nfttest.Must(CompileMap(nft.FamilyIP, (*nft.Map)(&s)))
	}
	a := compile(func(*nft.Set) {})
	for name, same := range map[string]func(*nft.Set){
		"nothing":           func(*nft.Set) {},
		"elements":          func(s *nft.Set) { s.Elements = []nft.Element{{Key: "1.1.1.1 . 1", Value: "1"}} },
		"part of a jiffy":   func(s *nft.Set) { s.Timeout += 4 * time.Millisecond },
		"order of the flag": func(s *nft.Set) { s.Flags = nil },
	} {
		if b := compile(same); !a.Equal(b) || !b.Equal(a) {
			t.Errorf("a change of %s makes the sets differ", name)
		}
	}
	for name, change := range map[string]func(*nft.Set){
		"name":        func(s *nft.Set) { s.Name = "x" },
		"key":         func(s *nft.Set) { s.Type = "ipv4_addr . uid : mark" },
		"data":        func(s *nft.Set) { s.Type = "ipv4_addr . mark : uid" },
		"verdict":     func(s *nft.Set) { s.Type = "ipv4_addr . mark : verdict" },
		"interval":    func(s *nft.Set) { s.Type = "ipv4_addr . mark : interval mark" },
		"typeof":      func(s *nft.Set) { s.Type, s.TypeOf = "", "ip saddr . meta mark : meta mark" },
		"flags":       func(s *nft.Set) { s.Flags = []string{"timeout", "dynamic"} },
		"timeout":     func(s *nft.Set) { s.Timeout = 2 * time.Hour },
		"no timeout":  func(s *nft.Set) { s.Timeout = 0 },
		"gc-interval": func(s *nft.Set) { s.GCInterval = time.Second },
		"size":        func(s *nft.Set) { s.Size = 8 },
		"policy":      func(s *nft.Set) { s.Policy = "" },
		"comment":     func(s *nft.Set) { s.Comment = "d" },
	} {
		if b := compile(change); a.Equal(b) || b.Equal(a) {
			t.Errorf("a change of %s leaves the sets equal", name)
		}
	}
}

func TestSetDeclaration(t *testing.T) {
	for _, in := range []nft.Set{
		{Name: "plain", Type: "ipv4_addr"},
		{Name: "concat", Type: "ipv4_addr . inet_proto . inet_service", Flags: []string{"interval"}, Size: 100, Comment: "who"},
		{Name: "dyn", Type: "ipv6_addr", Flags: []string{"timeout", "dynamic"}, Timeout: time.Minute, GCInterval: time.Second},
		{Name: "counted", Type: "ipv4_addr", Flags: []string{"dynamic"}, Stateful: []string{"counter", "limit rate 5/second"}},
		{Name: "memory", Type: "mark", Policy: "memory"},
		{Name: "vmap", Type: "inet_service : verdict"},
		{Name: "nat", Type: "ipv4_addr . inet_service : ipv4_addr . inet_service"},
		{Name: "ranges", Type: "ipv4_addr : interval ipv4_addr"},
	} {
		in.Name = "s"
		s := nfttest.Must(compileEither(nft.FamilyIP, in))
		if diff := cmp.Diff(in, s.Declaration()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in.Name, diff)
		}
	}
}

// TestDump writes sets in the notation of `nft --debug=netlink`.
func TestDump(t *testing.T) {
	s := nfttest.Must(Compile(nft.FamilyIP, &nft.Set{
		Name: "s", Type: "ipv4_addr", Flags: []string{"interval"}, Timeout: time.Second, GCInterval: time.Minute, Size: 9, Policy: "memory",
	}))
	if got, want := s.DumpDeclaration("t"), "s t 14 timeout 1000ms gc_interval 60000ms policy 1 size 9\n"; got != want {
		t.Errorf("DumpDeclaration = %q, want %q", got, want)
	}
	e := nfttest.Must(s.Pack(nft.Element{Key: "10.0.0.0/8", Comment: "x", Expires: 500 * time.Millisecond}))
	if e.Expires() != 500*time.Millisecond {
		t.Errorf("Expires = %s", e.Expires())
	}
	// An end, with the flag 1, comes before the interval and after it.
	got := s.DumpElements("t", []Element{e})
	if comment := `0 [end]  userdata = { \x00\x02x\x00 }`; !strings.Contains(got, comment) || strings.Count(got, " : 1 [end]") != 2 {
		t.Errorf("DumpElements = %q, want two ends, and %s", got, comment)
	}
	if got := s.DumpElements("t", nil); got != "" {
		t.Errorf("DumpElements of none = %q", got)
	}
}

// extensionFields returns all expressions on extensions that can be declared.
func extensionFields() []string {
	var out []string
	for _, kind := range []syntax.ExthdrKind{syntax.ExthdrIPv6, syntax.ExthdrIPv4, syntax.ExthdrTCP, syntax.ExthdrSCTP} {
		list, _ := selector.ExtensionsOf(kind)
		for _, e := range list {
			prefix := kind.String() + " "
			if kind == syntax.ExthdrIPv6 {
				prefix = ""
			}
			if e.Presence.Bits != 0 {
				out = append(out, kind.String()+" "+e.Name)
			}
			for _, f := range e.Fields {
				out = append(out, prefix+e.Name+" "+f.Name)
			}
		}
	}
	return out
}

// TestExtensionTypes has expressions on extensions that TestDeclarationsAsNft has not.
func TestExtensionTypes(t *testing.T) {
	for _, text := range []string{"tcp option 200", "tcp option 2 length", "tcp option @2,16,16"} {
		s := nfttest.Must(Compile(nft.FamilyInet, &nft.Set{Name: "s", TypeOf: text}))
		parts, want := typeOfParts(s.UserData, udataSetKeyTypeOf), s.Key.parts
		if len(parts) != 1 || parts[0] != want[0] {
			t.Errorf("%s: reads back as %+v, want %+v", text, parts, want)
		}
	}
	for _, attrs := range [][]uint32{{9, 1, 1}, {1, 77, 0}, {7, 9, 2}, {255, 1, 1}, {0, 9, 3}, {0, 0, 4}} {
		if p, ok := parseTypeOfExthdr(func(typ byte) uint32 { return attrs[typ] }); ok {
			t.Errorf("%v reads as %+v", attrs, p)
		}
	}
	for _, text := range []string{"tcp option nop length", "tcp option @2,24,8", "tcp option @200,16,16", "rt2 addr", "frag bogus", "exthdr srh"} {
		var e *syntax.Error
		if _, err := Compile(nft.FamilyInet, &nft.Set{Name: "s", TypeOf: text}); !errors.As(err, &e) {
			t.Errorf("typeof %s: error %v, want one with a place", text, err)
		}
	}
}
