package admission

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/set"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nowhere finds no declarations.
type nowhere struct{}

func (nowhere) Set(nft.TableID, string) (*set.Set, bool) { return nil, false }

func admit(f *weftv1.Fragment) (*desired.Update, error) {
	b := NewSnapshot(Config{}, desired.Key{Publisher: "p", Name: f.GetName()}, nowhere{})
	b.AddFragment(f)
	return b.Finish()
}

func TestAdmitTablesAndFile(t *testing.T) {
	tables := &weftv1.Fragment{Name: "f", Priority: 3, Tables: []*weftv1.Table{{
		Family: "inet", Name: "t", Comment: "c",
		Sets:   []*weftv1.Set{{Name: "s", Type: "ipv4_addr", Flags: []string{"interval"}, Elements: []*weftv1.Element{{Key: "10.0.0.0/8", Comment: "ten"}}}},
		Maps:   []*weftv1.Set{{Name: "m", Type: "inet_service : verdict", Elements: []*weftv1.Element{{Key: "80", Value: "goto web"}}}},
		Chains: []*weftv1.Chain{{Name: "web", Rules: []*weftv1.Rule{{Text: "ip saddr @s drop"}}}},
	}}}
	file := &weftv1.Fragment{Name: "f", Priority: 3, Nft: `table inet t {
	comment "c"
	set s {
		type ipv4_addr
		flags interval
		elements = { 10.0.0.0/8 comment "ten" }
	}
	map m {
		type inet_service : verdict
		elements = { 80 : goto web }
	}
	chain web {
		ip saddr @s drop
	}
}
`}
	for _, f := range []*weftv1.Fragment{tables, file} {
		u, err := admit(f)
		must(t, err)
		if len(u.Tables) != 1 || u.Priority != 3 || !u.Snapshot {
			t.Fatalf("update %+v", u)
		}
		table := u.Tables[0]
		if table.Comment != "c" || len(table.PutSets) != 2 || len(table.PutSets[0].Elements) != 1 || len(table.PutSets[1].Elements) != 1 {
			t.Fatalf("table %+v", table)
		}
		if len(table.PutChains) != 1 || len(table.PutChains[0].Rules) != 1 || table.PutChains[0].Rules[0].Sets[0] != "s" {
			t.Fatalf("chains %+v", table.PutChains)
		}
	}
}

// TestAdmitViolations has one mistake per fragment.
func TestAdmitViolations(t *testing.T) {
	table := func(change func(*weftv1.Table)) *weftv1.Fragment {
		m := &weftv1.Table{Family: "ip", Name: "t"}
		change(m)
		return &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{m}}
	}
	rule := func(text string) *weftv1.Fragment {
		return table(func(m *weftv1.Table) {
			m.Chains = []*weftv1.Chain{{Name: "c", Rules: []*weftv1.Rule{{Text: "accept"}, {Text: text}}}}
		})
	}
	set := func(s *weftv1.Set) *weftv1.Fragment {
		return table(func(m *weftv1.Table) { m.Sets = []*weftv1.Set{s} })
	}
	tests := []struct {
		name   string
		f      *weftv1.Fragment
		object string
		text   string
		reason weftv1.Violation_Reason
		place  string
	}{
		{"family", table(func(m *weftv1.Table) { m.Family = "ipx" }), "table ipx t", "ipx", weftv1.Violation_REASON_INVALID, ""},
		{"table name", table(func(m *weftv1.Table) { m.Name = "1t" }), "table ip 1t", "letter first", weftv1.Violation_REASON_INVALID, ""},
		{"comment", table(func(m *weftv1.Table) { m.Comment = `a"b` }), "table ip t", "quotes", weftv1.Violation_REASON_INVALID, ""},
		{"syntax", rule("tcp dport 80 drop )"), "rule ip t c #2", "", weftv1.Violation_REASON_SYNTAX, "1:"},
		{"unknown set", rule("ip saddr @missing drop"), "rule ip t c #2", "missing", weftv1.Violation_REASON_INVALID, "1:"},
		{"long rule", rule("ip saddr { " + strings.Repeat("10.0.0.1, ", 2000) + "10.0.0.2 } drop"), "#2", "at most", weftv1.Violation_REASON_LIMIT, ""},
		{"chain twice", table(func(m *weftv1.Table) { m.Chains = []*weftv1.Chain{{Name: "c"}, {Name: "c"}} }), "chain ip t c", "twice", weftv1.Violation_REASON_INVALID, ""},
		{"half a base chain", table(func(m *weftv1.Table) { m.Chains = []*weftv1.Chain{{Name: "c", Type: "filter"}} }), "chain ip t c", "hook", weftv1.Violation_REASON_INVALID, ""},
		{"set type", set(&weftv1.Set{Name: "s", Type: "ipv9_addr"}), "set ip t s", "ipv9_addr", weftv1.Violation_REASON_INVALID, ""},
		{"element", set(&weftv1.Set{Name: "s", Type: "ipv4_addr", Elements: []*weftv1.Element{{Key: "10.0.0.999"}}}), "element ip t s { 10.0.0.999 }", "10.0.0.999", weftv1.Violation_REASON_INVALID, ""},
		{"long element", set(&weftv1.Set{Name: "s", Type: "ipv4_addr", Elements: []*weftv1.Element{{Key: strings.Repeat("1", 2000)}}}), "element ip t s { 111", "longer", weftv1.Violation_REASON_LIMIT, ""},
		{"negative timeout", set(&weftv1.Set{Name: "s", Type: "ipv4_addr", Flags: []string{"timeout"}, Elements: []*weftv1.Element{{Key: "10.0.0.1", Timeout: durationpb.New(-time.Millisecond)}}}), "element ip t s { 10.0.0.1 }", "negative", weftv1.Violation_REASON_INVALID, ""},
		{"set twice", table(func(m *weftv1.Table) {
			m.Sets = []*weftv1.Set{{Name: "s", Type: "ipv4_addr"}, {Name: "s", Type: "ipv4_addr"}}
		}), "set ip t s", "twice", weftv1.Violation_REASON_INVALID, ""},
		{"conntrack set", set(&weftv1.Set{Name: "s", Type: "ipv4_addr", Role: weftv1.MapRole_MAP_ROLE_CONNTRACK}), "set ip t s", "only a map", weftv1.Violation_REASON_INVALID, ""},
		{"unknown role", table(func(m *weftv1.Table) { m.Maps = []*weftv1.Set{{Name: "m", Type: "ipv4_addr : verdict", Role: 9}} }), "map ip t m", "role 9", weftv1.Violation_REASON_INVALID, ""},
		{"both forms", &weftv1.Fragment{Name: "f", Nft: "table ip t { }", Tables: []*weftv1.Table{{Name: "t"}}}, "", "both tables and nft", weftv1.Violation_REASON_INVALID, ""},
		{"file", &weftv1.Fragment{Name: "f", Nft: "table ip t {\n\tchain c {\n\t\ttcp dprot 80 drop\n\t}\n}\n"}, "rule ip t c #1", "dprot", weftv1.Violation_REASON_INVALID, "3:"},
		{"lifetime", &weftv1.Fragment{Name: "f", Lifetime: 9}, "", "lifetime 9", weftv1.Violation_REASON_INVALID, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u, err := admit(tt.f)
			var r *RejectedError
			if !errors.As(err, &r) || u != nil {
				t.Fatalf("update %v, error %v: want a rejection", u, err)
			}
			if len(r.Violations) != 1 {
				t.Fatalf("violations %v: want one", r.Violations)
			}
			v := r.Violations[0]
			if !strings.Contains(v.GetObject().Text(), tt.object) || !strings.Contains(v.GetMessage(), tt.text) || v.GetReason() != tt.reason {
				t.Errorf("violation %v: want object %q, message %q, reason %v", v, tt.object, tt.text, tt.reason)
			}
			if place := fmt.Sprintf("%d:%d", v.GetLine(), v.GetColumn()); tt.place != "" && (!strings.HasPrefix(place, tt.place) || !strings.Contains(v.GetExcerpt(), "^")) {
				t.Errorf("place %s, excerpt %q: want %s and a caret", place, v.GetExcerpt(), tt.place)
			}
			if strings.Contains(v.GetMessage(), "\n") || len(v.GetMessage()) > 1000 {
				t.Errorf("message is not one short line: %q", v.GetMessage())
			}
		})
	}
}

// TestAdmitListsAllViolations has more mistakes than an answer holds, some of
// them in elements that are packed in parallel.
func TestAdmitListsAllViolations(t *testing.T) {
	s := &weftv1.Set{Name: "s", Type: "ipv4_addr"}
	for i := range 2000 {
		s.Elements = append(s.Elements, &weftv1.Element{Key: fmt.Sprintf("10.0.%d.%d", i>>8, i&255)})
	}
	for i := range 20 {
		s.Elements[i*100].Key = fmt.Sprintf("bad-%d", i)
	}
	c := &weftv1.Chain{Name: "c"}
	for i := range 200 {
		text := "accept"
		if i%10 == 0 {
			text = "acept"
		}
		c.Rules = append(c.Rules, &weftv1.Rule{Text: text})
	}
	_, err := admit(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{Family: "ip", Name: "t", Sets: []*weftv1.Set{s}, Chains: []*weftv1.Chain{c}}}})
	var r *RejectedError
	if !errors.As(err, &r) {
		t.Fatal(err)
	}
	if len(r.Violations) != MaxViolations+1 || r.Violations[MaxViolations].GetMessage() != "8 more violations are not listed" {
		t.Fatalf("%d violations, the last: %v", len(r.Violations), r.Violations[len(r.Violations)-1])
	}
}

func TestAdmitLimits(t *testing.T) {
	f := &weftv1.Fragment{Name: "f"}
	for i := range MaxTables + 5 {
		f.Tables = append(f.Tables, &weftv1.Table{Family: "ip", Name: fmt.Sprintf("t%d", i)})
	}
	_, err := admit(f)
	var r *RejectedError
	if !errors.As(err, &r) || len(r.Violations) != 1 || r.Violations[0].GetReason() != weftv1.Violation_REASON_LIMIT {
		t.Fatalf("too many tables: %v", err)
	}
	// 105 NetworkPolicies of 100 rules are as much.
	m := &weftv1.Table{Family: "ip", Name: "t"}
	for i := range 10_500 {
		m.Sets = append(m.Sets, &weftv1.Set{Name: fmt.Sprintf("s%d", i), Type: "ipv4_addr"})
		m.Objects = append(m.Objects, &weftv1.Object{Kind: "counter", Name: fmt.Sprintf("c%d", i)})
	}
	if _, err = admit(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{m}}); err != nil {
		t.Errorf("many sets and objects: %v", err)
	}
}

// TestNoRoom has a state directory without room, or none: only durable fragments need it.
func TestNoRoom(t *testing.T) {
	full := func(n int) error { return fmt.Errorf("%d bytes are too many", n) }
	for _, tt := range []struct {
		cfg      Config
		lifetime weftv1.Lifetime
		nft      string
		want     string
	}{
		{Config{Durable: true, Room: full}, weftv1.Lifetime_LIFETIME_STICKY, "table ip t { }", ""},
		{Config{Durable: true, Room: full}, weftv1.Lifetime_LIFETIME_DURABLE, "", ""},
		{Config{Durable: true, Room: full}, weftv1.Lifetime_LIFETIME_DURABLE, "table ip t { }",
			"cannot store a durable fragment in the state directory: 21 bytes are too many: free some space, or use another lifetime"},
		{Config{}, weftv1.Lifetime_LIFETIME_DURABLE, "table ip t { }", "lifetime durable needs a state directory: start the aggregator with --state-dir"},
		{Config{Durable: true}, 99, "table ip t { }", "lifetime 99 is unknown"},
	} {
		b := NewSnapshot(tt.cfg, desired.Key{Publisher: "p", Name: "f"}, nowhere{})
		b.AddFragment(&weftv1.Fragment{Name: "f", Lifetime: tt.lifetime, Nft: tt.nft})
		_, err := b.Finish()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("lifetime %v, %q: error %v, want %q", tt.lifetime, tt.nft, err, tt.want)
		}
	}
}

// TestUnknownField has fields of a later version of the protocol in a rule and in a patch.
func TestUnknownField(t *testing.T) {
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 1)
	rule := &weftv1.Rule{Text: "accept"}
	rule.ProtoReflect().SetUnknown(unknown)
	chains := []*weftv1.Chain{{Name: "c", Rules: []*weftv1.Rule{rule}}}
	for version, want := range map[string]string{"": "unknown field 999", "v1.2": "unknown field 999; this daemon is v1.2: update it"} {
		snapshot := NewSnapshot(Config{Version: version}, desired.Key{Publisher: "p", Name: "f"}, nowhere{})
		snapshot.AddFragment(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{Family: "ip", Name: "t", Chains: chains}}})
		patch := NewPatch(Config{Version: version}, desired.Key{Publisher: "p", Name: "f"}, Declared{}, nowhere{})
		patch.AddPatch(&weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{Family: "ip", Name: "t", PutChains: chains}}})
		for _, b := range []*Builder{snapshot, patch} {
			_, err := b.Finish()
			var r *RejectedError
			if !errors.As(err, &r) || r.Violations[0].GetMessage() != want || !strings.Contains(r.Violations[0].GetObject().Text(), "rule ip t c") {
				t.Errorf("version %q: error %v, want %s", version, err, want)
			}
		}
	}
}

// TestExpires has the ways to say when a fragment expires.
func TestExpires(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	ttl := func(d time.Duration) *weftv1.Fragment {
		return &weftv1.Fragment{Name: "f", Expiration: &weftv1.Fragment_Ttl{Ttl: durationpb.New(d)}}
	}
	at := func(x *timestamppb.Timestamp) *weftv1.Fragment {
		return &weftv1.Fragment{Name: "f", Expiration: &weftv1.Fragment_ExpireTime{ExpireTime: x}}
	}
	for name, tt := range map[string]struct {
		f    *weftv1.Fragment
		want time.Duration
		text string
	}{
		"never":             {&weftv1.Fragment{Name: "f"}, 0, ""},
		"ttl":               {ttl(time.Hour), time.Hour, ""},
		"time":              {at(timestamppb.New(now.Add(time.Minute))), time.Minute, ""},
		"zero ttl":          {ttl(0), 0, "ttl 0s: want more than 0"},
		"negative ttl":      {ttl(-time.Second), 0, "ttl -1s: want more than 0"},
		"long ttl":          {ttl(MaxTTL + time.Second), 0, "the fragment would expire at 2036-06-28T11:00:01Z: want at most 3650 days from now"},
		"time that is past": {at(timestamppb.New(now)), 0, "expire_time 2026-07-01T11:00:00Z has passed: give a later time"},
		"invalid time":      {at(&timestamppb.Timestamp{Nanos: -1}), 0, "expire_time: "},
	} {
		b := NewSnapshot(Config{Now: func() time.Time { return now }}, desired.Key{Publisher: "p", Name: "f"}, nowhere{})
		b.AddFragment(tt.f)
		u, err := b.Finish()
		if (err == nil) != (tt.text == "") || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: error %v, want %q", name, err, tt.text)
			continue
		}
		if err == nil && (u.Expires.IsZero() != (tt.want == 0) || tt.want != 0 && u.Expires.Sub(now) != tt.want) {
			t.Errorf("%s: expires at %v", name, u.Expires)
		}
	}
}

// TestPacked: packed elements are admitted as the same elements in text are, and refused by the name of their set.
func TestPacked(t *testing.T) {
	const key, other = "\x0a\x00\x00\x01\x00\x50\x00\x00", "\x0a\x00\x00\x02\x00\x50\x00\x00"
	fragment := func(edit func(*weftv1.Set)) *weftv1.Fragment {
		m := &weftv1.Set{Name: "m", Type: "ipv4_addr . inet_service : mark"}
		edit(m)
		return &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{Family: "ip", Name: "t", Maps: []*weftv1.Set{m}}}}
	}
	packed := func(count uint32, keys, values string) *weftv1.Fragment {
		return fragment(func(m *weftv1.Set) {
			m.Packed = []*weftv1.PackedElements{{Count: count, Keys: []byte(keys), Values: []byte(values)}}
		})
	}
	mark := string(binary.NativeEndian.AppendUint32(nil, 7))
	want, err := admit(fragment(func(m *weftv1.Set) {
		m.Elements = []*weftv1.Element{{Key: "10.0.0.1 . 80", Value: "7"}, {Key: "10.0.0.2 . 80", Value: "7"}}
	}))
	must(t, err)
	got, err := admit(packed(2, key+other, mark+mark))
	if err != nil || !slices.Equal(got.Tables[0].PutSets[0].Elements, want.Tables[0].PutSets[0].Elements) {
		t.Errorf("packed elements are admitted as %v (%v), want %v", got, err, want.Tables[0].PutSets[0].Elements)
	}
	many, err := admit(packed(2*inlineElements, strings.Repeat(key, 2*inlineElements), strings.Repeat(mark, 2*inlineElements)))
	if err != nil || len(many.Tables[0].PutSets[0].Elements) != 2*inlineElements {
		t.Errorf("many packed elements: %v", err)
	}
	if _, err := admit(packed(3, key+other, mark+mark)); err == nil || !strings.Contains(err.Error(), "map ip t m") ||
		!strings.Contains(err.Error(), "its keys have 16 bytes: want 3 times 8") {
		t.Errorf("a wrong count is refused with: %v", err)
	}
	b := NewPatch(Config{}, desired.Key{Publisher: "p", Name: "f"}, Declared{want.Tables[0].Table: {"m": want.Tables[0].PutSets[0].Decl}}, nowhere{})
	b.AddPatch(&weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{Family: "ip", Name: "t", Elements: []*weftv1.ElementPatch{{
		Set: "m", RemovePacked: []*weftv1.PackedElements{{Count: 1, Keys: []byte(key)}},
		AddPacked: []*weftv1.PackedElements{{Count: 1, Keys: []byte(other), Values: []byte(mark)}},
	}}}}})
	u, err := b.Finish()
	must(t, err)
	change, elements := u.Tables[0].Elements[0], want.Tables[0].PutSets[0].Elements
	if !slices.Equal(change.Add, elements[1:]) || len(change.Remove) != 1 || change.Remove[0].Key != elements[0].Key {
		t.Errorf("a packed patch is admitted as %+v", change)
	}
}

// anyScope knows no set, and every chain.
type anyScope struct{}

func (anyScope) Set(string) (*set.Set, bool)        { return nil, false }
func (anyScope) Chain(string) bool                  { return true }
func (anyScope) Object(nft.ObjectKind, string) bool { return false }
func (anyScope) Flowtable(string) bool              { return false }

// TestHonoured: only rules that accept set the bit, and set it once.
func TestHonoured(t *testing.T) {
	p := &access.Publisher{Name: "web", Honoured: 0x30}
	for text, want := range map[string]string{
		"accept":              "meta mark set meta mark | 0x00000030 accept",
		"tcp dport 80 accept": "tcp dport 80 meta mark set meta mark | 0x00000030 accept",
		"tcp dport 80 meta mark set meta mark | 0x00000030 accept": "tcp dport 80 meta mark set meta mark | 0x00000030 accept",
		"jump accept":                     "jump accept",
		"tcp dport 80 goto accept":        "tcp dport 80 goto accept",
		"tcp dport 80 drop":               "tcp dport 80 drop",
		"tcp dport vmap { 80 : accept }":  "tcp dport vmap { 80 : accept }",
		"counter":                         "counter",
		"tcp dport 80 counter log accept": "tcp dport 80 counter log meta mark set meta mark | 0x00000030 accept",
	} {
		r, err := compile.CompileRule(nft.FamilyInet, nft.Rule{Text: text, Comment: "c"}, anyScope{})
		must(t, err)
		got, err := honoured(p, r, anyScope{})
		if err != nil || got.Text != want || got.Comment != "c" {
			t.Errorf("%q becomes %q %q, %v: want %q", text, got.Text, got.Comment, err, want)
		}
		if same, err := honoured(&access.Publisher{Name: "web"}, r, anyScope{}); err != nil || same != r {
			t.Errorf("%q changes for a publisher that is not honoured: %v, %v", text, same, err)
		}
	}
}

// FuzzAdmit feeds what a hostile publisher can send: no panic, and an update or
// a rejection with violations, never both.
func FuzzAdmit(f *testing.F) {
	for _, m := range []*weftv1.PublishRequest{
		{},
		{Id: 1, Update: &weftv1.PublishRequest_Snapshot{Snapshot: &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{
			Family: "ip", Name: "t",
			Sets:   []*weftv1.Set{{Name: "s", Type: "ipv4_addr", Flags: []string{"interval", "timeout"}, Elements: []*weftv1.Element{{Key: "10.0.0.0/8", Timeout: durationpb.New(5e6)}}}},
			Maps:   []*weftv1.Set{{Name: "m", Role: weftv1.MapRole_MAP_ROLE_CONNTRACK, Typeof: "ip daddr . tcp dport : verdict", Elements: []*weftv1.Element{{Key: "10.0.0.1 . 80", Value: "jump c"}}}},
			Chains: []*weftv1.Chain{{Name: "c", Type: "nat", Hook: "prerouting", Priority: "dstnat", Rules: []*weftv1.Rule{{Text: "ip daddr . tcp dport vmap @m", Comment: "x"}}}},
		}}}}},
		{Id: 2, Update: &weftv1.PublishRequest_Snapshot{Snapshot: &weftv1.Fragment{Name: "f", Nft: "table ip t { chain c { ip saddr 10.0.0.1 drop\n}\n}"}}},
		{Id: 3, Update: &weftv1.PublishRequest_Patch{Patch: &weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{
			Family: "ip", Name: "t", DeleteSets: []string{"s"}, PutSets: []*weftv1.Set{{Name: "s", Type: "inet_service"}},
			Elements: []*weftv1.ElementPatch{{Set: "s", Remove: []string{"80"}, Add: []*weftv1.Element{{Key: "1-5"}}}},
		}}}}},
	} {
		b, err := proto.Marshal(m)
		must(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &weftv1.PublishRequest{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		snapshot := m.GetSnapshot() != nil
		key := desired.Key{Publisher: "p", Name: "f"}
		a := NewSnapshot(Config{}, key, nowhere{})
		if snapshot {
			a.AddFragment(m.GetSnapshot())
		} else {
			a = NewPatch(Config{}, key, nil, nowhere{})
			a.AddPatch(m.GetPatch())
		}
		u, err := a.Finish()
		var r *RejectedError
		switch {
		case err == nil && u == nil:
			t.Fatal("neither update nor rejection")
		case err != nil && (u != nil || !errors.As(err, &r) || len(r.Violations) == 0):
			t.Fatalf("update %v, error %v", u, err)
		}
		a.Declared()
	})
}
