package set

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
)

func TestCompileMap(t *testing.T) {
	got, err := CompileMap(nft.FamilyIP, &nft.Map{
		Name: "affinity", TypeOf: "ip saddr . meta l4proto . th dport : ip daddr . th dport",
		Flags: []string{"dynamic", "timeout"}, Timeout: 3 * time.Hour, Size: 65536, Comment: "c",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &Set{
		Name: "affinity", Map: true,
		Key:   Type{ID: 7<<12 | 12<<6 | 13, Len: 12, Fields: []uint32{4, 1, 2}, Names: []string{"ipv4_addr", "inet_proto", "inet_service"}},
		Data:  Type{ID: 7<<6 | 13, Len: 8, Fields: []uint32{4, 2}, Names: []string{"ipv4_addr", "inet_service"}},
		Flags: FlagMap | FlagEval | FlagTimeout, Timeout: 3 * time.Hour, Size: 65536, Comment: "c",
	}
	plain := *got
	plain.Key.parts, plain.Data.parts, plain.UserData = nil, nil, nil
	if !reflect.DeepEqual(&plain, want) {
		t.Errorf("compiles to %+v, want %+v", plain, *want)
	}
}

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
		out, err := CompileMap(nft.FamilyIP, (*nft.Map)(&s))
		if err != nil {
			t.Fatal(err)
		}
		return out
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
