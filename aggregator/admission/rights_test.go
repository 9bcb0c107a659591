package admission

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// configured returns the configuration with one publisher, p, whose fields are on line 4.
func configured(t testing.TB, fields string) *access.Control {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weft.yaml")
	text := "apiVersion: weft.dev/v1alpha1\nkind: Configuration\npublishers:\n- {name: p, match: {uid: 1}, " + fields + "}\n"
	must(t, os.WriteFile(file, []byte(text), 0o600))
	control, err := access.Open(access.Options{File: file})
	must(t, err)
	return control
}

// violationsOf returns the violations of an error as lines "object: message", without the
// directory of the configuration.
func violationsOf(control *access.Control, err error) []string {
	var r *RejectedError
	if !errors.As(err, &r) {
		return nil
	}
	var lines []string
	for _, v := range r.Violations {
		line := v.GetMessage()
		if v.GetObject() != nil {
			line = v.GetObject().Text() + ": " + line
		}
		lines = append(lines, strings.ReplaceAll(line, control.Policy().File, "weft.yaml"))
	}
	return lines
}

// TestRights has configurations, and what they refuse. Each line of want is all of a
// violation, or its beginning if it ends in "...".
func TestRights(t *testing.T) {
	const nat = "may not translate addresses, write addresses or ports, or have maps of them (dnat, masquerade, redirect, tproxy, tcp dport set, ...): nat is not allowed (no allow.nat at weft.yaml:4)"
	for _, tt := range []struct {
		name, fields, nft string
		priority          int32
		want              []string
	}{
		{name: "own table", nft: "table ip p { chain c { accept; }; }"},
		{name: "table of another", nft: "table ip q { chain c { tcp dport 80 dnat to 10.0.0.1; }; }",
			want: []string{"table ip q: publisher p may not use table ip q: allowed tables are p (no allow.tables at weft.yaml:4)"}},
		{name: "family", fields: "allow: {families: [ip]}", nft: "table inet p { }",
			want: []string{"table inet p: publisher p may not use table inet p: allowed families are ip (allow.families at weft.yaml:4)"}},
		{name: "priority", fields: "priorities: {min: 1, max: 9}", priority: 10, nft: "table ip p { }",
			want: []string{"publisher p may not use priority 10: allowed is 1 to 9 (priorities at weft.yaml:4)"}},
		{name: "everything of a base chain", fields: "allow: {hooks: [output], chainPriorities: {max: 5}}", nft: "table ip p { chain c { type nat hook prerouting priority 10; policy drop; }; }",
			want: []string{
				"chain ip p c: publisher p may not use hook prerouting: allowed hooks are output (allow.hooks at weft.yaml:4)", "chain ip p c: publisher p may not have base chains of type nat...",
				"chain ip p c: publisher p may not have base chains with policy drop...", "chain ip p c: publisher p may not use chain priority 10: allowed is at most 5 (allow.chainPriorities at weft.yaml:4)",
			}},
		{name: "device", fields: "allow: {devices: [veth*]}", nft: "table netdev p { chain c { type filter hook ingress device eth0 priority 0; }; chain d { type filter hook ingress devices = { veth1, veth2 } priority 0; }; }",
			want: []string{"chain netdev p c: publisher p may not use device eth0: allowed devices are veth* (allow.devices at weft.yaml:4)"}},
		{name: "statement", nft: "table ip p { chain c { accept; tcp dport 80 dnat to 10.0.0.1; tcp dport 81 dnat to 10.0.0.1; }; }",
			want: []string{"rule ip p c #2: publisher p " + nat}},
		{name: "one violation for each right", fields: "allow: {nat: true}", nft: "table ip p { chain c { dnat to 10.0.0.1; notrack; notrack; meta nftrace set 1; }; }",
			want: []string{"rule ip p c #2: publisher p may not change connection tracking...", "rule ip p c #4: publisher p may not..."}},
		{name: "NAT map", nft: "table ip p { map m { type inet_service : ipv4_addr; }; map n { type ipv4_addr : verdict; }; }", want: []string{"map ip p m: publisher p " + nat}},
		{name: "map of marks", fields: "allow: {marks: 0xff}", nft: "table ip p { map m { type inet_service : mark; }; }",
			want: []string{"map ip p m: publisher p may not change the bits 0xffffff00 of the packet mark: allowed bits are 0x000000ff..."}},
		{name: "map of all marks", fields: "allow: {marks: 0xffffffff, masqueradeMark: true}", nft: "table ip p { map m { type inet_service : mark; }; }"},
		{name: "object", nft: "table ip p { counter n { }; ct helper ftp { type \"ftp\" protocol tcp; }; }",
			want: []string{"ct helper ip p ftp: publisher p may not change connection tracking..."}},
		{name: "flowtable", fields: "allow: {flowtables: true}", nft: "table ip p { flowtable f { hook ingress priority 0; devices = { lo }; }; }",
			want: []string{"flowtable ip p f: publisher p may not use device lo: allowed devices are none (no allow.devices at weft.yaml:4)"}},
		{name: "marks", fields: "allow: {marks: 0xff00}", nft: "table ip p { chain c { meta mark set meta mark & 0xffffbeff | 0x4100; meta mark set 1; }; }",
			want: []string{"rule ip p c #1: publisher p may not change the bits 0x00004000 of the packet mark..."}},
		{name: "log without a limit", fields: "allow: {log: 5}", nft: "table ip p { chain c { log; limit rate 1/second log; }; }",
			want: []string{"rule ip p c #1: publisher p may not log every packet: 5 packets a second are allowed..."}},
		{name: "log", nft: "table ip p { chain c { limit rate 1/second log; }; }", want: []string{"rule ip p c #1: publisher p may not log packets: log is not allowed (no allow.log at weft.yaml:4)"}},
		{name: "word of nft", nft: "table ip p { set add { type ipv4_addr; }; }", want: []string{"set ip p add: name \"add\" is a word of nft's language: nft could not read its own listing: use another name"}},
		{name: "word of nft for an administrator", fields: "admin: true", nft: "table ip p { set add { type ipv4_addr; }; }"},
		{name: "timeout", nft: "table ip p { set s { type ipv4_addr; timeout 4000d; }; }", want: []string{"set ip p s: publisher p declares a timeout of 96000h0m0s: at most 87600h0m0s is allowed"}},
		{name: "gc-interval", nft: "table ip p { set s { type ipv4_addr; flags timeout; gc-interval 10ms; }; }", want: []string{"set ip p s: publisher p declares a gc-interval of 10ms: at least 1s is allowed"}},
		{name: "gc-interval of the system", fields: "system: true", nft: "table ip p { set s { type ipv4_addr; flags timeout; gc-interval 10ms; }; }"},
		{name: "rules of a file", fields: "limits: {rules: 1}", nft: "table ip p { chain c { accept; accept; }; }",
			want: []string{"publisher p sends a snapshot with at least 2 rules: at most 1 are allowed (limits.rules at weft.yaml:4)"}},
		{name: "elements of a rule", fields: "limits: {elements: 3}", nft: "table ip p { chain c { tcp dport { 1, 2 } accept; tcp dport { 3, 5 } accept; }; }",
			want: []string{"rule ip p c #2: publisher p sends a snapshot with at least 4 elements: at most 3 are allowed (limits.elements at weft.yaml:4)"}},
		{name: "commas of a file", fields: "limits: {elements: 3}", nft: "table ip p { set s { type ipv4_addr; elements = { 10.0.0.1" + strings.Repeat(", 10.0.0.1", 3000) + " }; }; }",
			want: []string{"publisher p sends a snapshot with at least 976 elements: at most 3 are allowed (limits.elements at weft.yaml:4)"}},
		{name: "braces of a file", fields: "limits: {rules: 1, chains: 5, sets: 1}", nft: "table ip p {" + strings.Repeat("chain c {}\n", 1100) + "}",
			want: []string{"publisher p sends a snapshot with at least 74 chains: at most 5 are allowed (limits.chains at weft.yaml:4)"}},
		{name: "bytes of a file", fields: "limits: {bytes: 1000}", nft: "table ip p {" + strings.Repeat(" ", 100_000) + "}",
			want: []string{"publisher p sends a snapshot with at least 43..."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fields := tt.fields
			if fields == "" {
				fields = "read: false"
			}
			control := configured(t, fields)
			b := NewSnapshot(Config{Access: control, Status: func(desired.Key) *weftv1.FragmentStatus { return nil }}, desired.Key{Publisher: "p", Name: "f"}, nowhere{})
			b.AddFragment(&weftv1.Fragment{Name: "f", Priority: tt.priority, Nft: tt.nft})
			_, err := b.Finish()
			got := violationsOf(control, err)
			if !slices.EqualFunc(got, tt.want, func(got, want string) bool {
				beginning, cut := strings.CutSuffix(want, "...")
				return got == want || cut && strings.HasPrefix(got, beginning)
			}) {
				t.Errorf("violations:\n%s\nwant:\n%s\nerror: %v", strings.Join(got, "\n"), strings.Join(tt.want, "\n"), err)
			}
			if len(tt.want) == 0 && err != nil {
				t.Errorf("error %v", err)
			}
		})
	}
}

// ranges are n elements with ranges of ports.
func ranges(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.%d.%d . 1001-4007", i>>8, i&255)
	}
	return strings.Join(all, ", ")
}

// TestOverLimit has limits of what all fragments hold, and what exceeds each.
func TestOverLimit(t *testing.T) {
	for _, tt := range []struct{ name, limits, nft, want string }{
		{"fragments", "fragments: 1", "", "publisher p would hold 2 fragments, and holds 1: at most 1 are allowed (limits.fragments at weft.yaml:4)"},
		{"rules and objects", "rules: 3", "chain c { accept; }; counter n { };", "publisher p would hold 4 rules, and holds 2: at most 3 are allowed (limits.rules at weft.yaml:4)"},
		{"elements", "elements: 2", "chain c { tcp dport { 1, 5 } accept; };", "publisher p would hold 3 elements, and holds 1: at most 2 are allowed (limits.elements at weft.yaml:4)"},
		{"bytes", "bytes: 100", "chain c { ip saddr 10.0.0.1 accept comment \"" + strings.Repeat("x", 100) + "\"; };", "bytes, and holds"},
		{"chains", "chains: 1", "chain c { };", "publisher p would hold 2 chains, and holds 1: at most 1 are allowed (limits.chains at weft.yaml:4)"},
		{"base chains", "baseChains: 1", "chain c { type filter hook input priority 0; }; chain d { type filter hook input priority 0; };",
			"publisher p would hold 2 base chains, and holds 0: at most 1 are allowed (limits.baseChains at weft.yaml:4)"},
		{"sets", "sets: 1", "set t { type ipv4_addr; };", "publisher p would hold 2 sets, and holds 1: at most 1 are allowed (limits.sets at weft.yaml:4)"},
		{"memory", "memory: 1Mi", "set t { type ipv4_addr; size 65536; };", "bytes of kernel memory, and holds"},
		{"log", "", "chain c { limit rate 5/second burst 1 packets log; };", "publisher p would log up to 10.1 packets a second, and logs 5.1: at most 6 are allowed"},
		{"packet", "packetNanoseconds: 20", "chain c { type filter hook input priority 0; tcp dport 1 accept; jump d; }; chain d { accept; };",
			" of it in c, then d): at most 20ns are allowed: use sets"},
		{"every packet", "everyPacketNanoseconds: 20", "chain c { type filter hook input priority 0; tcp dport 1 accept; tcp dport 2 accept; };",
			"publisher p makes every packet take "},
		{"connections of an element", "", "set r { type ipv4_addr; flags dynamic; ct count over 100000; }; chain c { type filter hook input priority 0; ip saddr @r drop; };", "at most 500µs are allowed: "},
		{"connections", "", "chain c { type filter hook input priority 0; ct count over 5; };", "at most 500µs are allowed: "},
		{"lookups", "packetNanoseconds: 300", "set r { type ipv4_addr . inet_service; flags interval; elements = { " + ranges(500) + " }; }; chain c { type filter hook input priority 0; ip saddr . tcp dport @r drop; };",
			"at most 300ns are allowed: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			control := configured(t, "allow: {log: 6}, limits: {"+tt.limits+"}")
			state := merge.New()
			apply := func(name, nft string) error {
				key := desired.Key{Publisher: "p", Name: name}
				b := NewSnapshot(Config{Access: control}, key, state.Scope())
				b.AddFragment(&weftv1.Fragment{Name: name, Nft: "table ip p {" + nft + "}"})
				u, err := b.Finish()
				if err != nil {
					return err
				}
				return state.ApplyWithin(u, OverLimit(control.Publisher("p"), key), nil)
			}
			if err := apply("first", "set s { type ipv4_addr; elements = { 10.0.0.1 }; }; chain first { accept; limit rate 5/second burst 1 packets log; };"); err != nil {
				t.Fatal(err)
			}
			before := state.Usage("p")
			err := apply("second", tt.nft)
			if got := strings.Join(violationsOf(control, err), "\n"); !strings.Contains(got, tt.want) {
				t.Errorf("violations %s, want %s (error %v)", got, tt.want, err)
			}
			if got := state.Usage("p"); got != before {
				t.Errorf("usage is %+v, was %+v", got, before)
			}
		})
	}
}

// TestStoredWithinRights admits what the state directory has: limits do not count, and rights
// do.
func TestStoredWithinRights(t *testing.T) {
	control := configured(t, "allow: {log: 1}, limits: {rules: 1, elements: 1}")
	state := merge.New()
	apply := func(name, nft string) error {
		key := desired.Key{Publisher: "p", Name: name}
		b := NewSnapshot(Config{Access: control, Stored: true}, key, state.Scope())
		b.AddFragment(&weftv1.Fragment{Name: name, Nft: "table ip p {" + nft + "}"})
		u, err := b.Finish()
		if err != nil {
			return err
		}
		return state.ApplyWithin(u, OverRights(control.Publisher("p"), key), nil)
	}
	// "set" is a word of nft's language.
	const log = "chain %s { limit rate 50/minute burst 1 packets log; };"
	if err := apply("a", "chain set { accept; accept; tcp dport { 1, 2, 5 } accept; }; set t { type ipv4_addr; flags timeout; gc-interval 10ms; elements = { 10.0.0.1 timeout 4000d, 10.0.0.5 }; };"+fmt.Sprintf(log, "log")); err != nil {
		t.Errorf("what is over the limits: %v", err)
	}
	err := apply("b", fmt.Sprintf(log, "c"))
	if got := violationsOf(control, err); len(got) != 1 || !strings.HasPrefix(got[0], "publisher p would log up to 1.7 packets a second, and logs 0.9: at most 1 are allowed") {
		t.Errorf("violations %v, error %v", got, err)
	}
	var rejected *RejectedError
	if !errors.As(err, &rejected) || len(rejected.Refusals) != 1 {
		t.Errorf("refusals of %v", err)
	} else if r := rejected.Refusals[0]; !r.Limit.Right() || !errors.Is(r, access.ErrDenied) {
		t.Errorf("refusal %+v is not one of a right", r)
	}
	if got := violationsOf(control, apply("c", "chain d { notrack; };")); len(got) != 1 || !strings.Contains(got[0], "conntrack is not allowed") {
		t.Errorf("violations %v", got)
	}
}

// outside is a scope with one set in each table.
type outside struct{ decl *set.Set }

func (o outside) Set(_ nft.TableID, name string) (*set.Set, bool) { return o.decl, name == o.decl.Name }

// TestRecompile compiles rules again when the set of another fragment has changed: what the
// rules need the right to can change with it.
func TestRecompile(t *testing.T) {
	compiled := func(data string) outside {
		decl, err := set.CompileMap(nft.FamilyIP, &nft.Map{Name: "m", Type: "inet_service : " + data})
		must(t, err)
		return outside{decl}
	}
	control := configured(t, "allow: {nat: true}")
	b := NewSnapshot(Config{Access: control}, desired.Key{Publisher: "p", Name: "f"}, compiled("ipv4_addr"))
	b.AddFragment(&weftv1.Fragment{Name: "f", Nft: "table ip p { chain c { type nat hook output priority 0; dnat to tcp dport map @m; tcp dport { 1, 5 } accept; }; }"})
	u, err := b.Finish()
	must(t, err)
	// A rule, and the two elements of the other one's set.
	if b.Cost() != 4 || b.Key() != u.Fragment {
		t.Errorf("cost %d, key %s", b.Cost(), b.Key())
	}
	again, err := b.Recompile(u, compiled("ipv4_addr"))
	must(t, err)
	if again.Tables[0].Uses["m"] == u.Tables[0].Uses["m"] || len(again.Tables[0].PutChains[0].Rules) != 2 || b.Cost() != 4 {
		t.Errorf("the second update uses %v, the first %v, cost %d", again.Tables[0].Uses, u.Tables[0].Uses, b.Cost())
	}
	if got := violationsOf(control, errorOf(b.Recompile(u, compiled("mark")))); len(got) != 1 || !strings.HasPrefix(got[0], "rule ip p c #1: ") {
		t.Errorf("violations %v", got)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// TestMaxEncoded bounds the messages of a snapshot by the bytes that its publisher may hold.
func TestMaxEncoded(t *testing.T) {
	for fields, want := range map[string]int{"read: true": MaxBytes, "limits: {bytes: 1000}": 8000 + 64<<10, "limits: {bytes: 1Gi}": MaxBytes} {
		if got := MaxEncoded(configured(t, fields).Publisher("p")); got != want {
			t.Errorf("%s: %d bytes, want %d", fields, got, want)
		}
	}
	if got := MaxEncoded(nil); got != MaxBytes {
		t.Errorf("without limits: %d bytes", got)
	}
}

// TestRefusalsOfElements: a limit of elements is a refusal, also if many of them are packed beside each other.
func TestRefusalsOfElements(t *testing.T) {
	control := configured(t, "limits: {elements: 100}")
	long := &weftv1.Set{Name: "s", Type: "ipv4_addr", Flags: []string{"timeout"}, Elements: []*weftv1.Element{{Key: "10.0.0.1", Timeout: durationpb.New(2 * access.MaxTimeout)}}}
	anonymous := &weftv1.Chain{Name: "c"}
	for i := range 60 {
		anonymous.Rules = append(anonymous.Rules, &weftv1.Rule{Text: fmt.Sprintf("tcp dport { %d, %d } drop", 2*i+1, 2*i+1000)})
	}
	for limit, table := range map[access.Limit]*weftv1.Table{
		access.LimitTimes:    {Family: "ip", Name: "p", Sets: []*weftv1.Set{long}},
		access.LimitElements: {Family: "ip", Name: "p", Chains: []*weftv1.Chain{anonymous}},
	} {
		b := NewSnapshot(Config{Access: control}, desired.Key{Publisher: "p", Name: "f"}, nowhere{})
		b.AddFragment(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{table}})
		_, err := b.Finish()
		r := (*RejectedError)(nil)
		if !errors.As(err, &r) {
			t.Fatalf("limit %v: %v", limit, err)
		}
		if len(r.Refusals) != 1 || r.Refusals[0].Limit != limit || r.Violations[0].GetReason() != weftv1.Violation_REASON_LIMIT {
			t.Errorf("limit %v: %d refusals, rejected with %v", limit, len(r.Refusals), err)
		}
	}
}

// TestEveryListIsCounted finds the lists of messages that an update can have. Each must
// be counted, or it could be as long as a request.
func TestEveryListIsCounted(t *testing.T) {
	lists := make(map[protoreflect.Name]bool)
	var walk func(m protoreflect.MessageDescriptor)
	walk = func(m protoreflect.MessageDescriptor) {
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if f.Message() == nil {
				continue
			}
			if f.IsList() {
				lists[f.Message().Name()] = true
			}
			walk(f.Message())
		}
	}
	for _, m := range []proto.Message{&weftv1.ApplyRequest{}, &weftv1.PublishRequest{}, &weftv1.PlanRequest{}} {
		walk(m.ProtoReflect().Descriptor())
	}
	for name := range lists {
		var s Size
		s.count(name)
		s.Decoded = 0
		if s == (Size{}) {
			t.Errorf("a list of %s is not counted", name)
		}
	}
	if len(lists) < 8 {
		t.Errorf("found %d lists", len(lists))
	}
}

func TestMeasure(t *testing.T) {
	patch := &weftv1.PublishRequest{Id: 7, Update: &weftv1.PublishRequest_Patch{Patch: &weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{
		Name: "t", PutChains: []*weftv1.Chain{{Name: "c", Rules: []*weftv1.Rule{{Text: "accept"}, {Text: "drop"}}}},
		PutSets:       []*weftv1.Set{{Name: "s", Elements: []*weftv1.Element{{Key: "1.1.1.1"}}, Packed: []*weftv1.PackedElements{{Count: 3, Keys: make([]byte, 12)}}}},
		PutObjects:    []*weftv1.Object{{Name: "o"}},
		DeleteObjects: []*weftv1.ObjectReference{{Name: "p"}},
		Elements:      []*weftv1.ElementPatch{{Set: "s", Add: []*weftv1.Element{{Key: "1.1.1.2"}}, Remove: []string{"1.1.1.3"}}},
		DeleteSets:    []string{"x", "y"},
	}}}}}
	b, err := proto.Marshal(patch)
	must(t, err)
	m := patch.ProtoReflect().Descriptor()
	got, err := Measure(m, b)
	want := Size{Fragments: 1, Tables: 1, Chains: 1, Sets: 1, Rules: 2, Objects: 2, Elements: 7, Changes: 1, Names: 2, Decoded: got.Decoded}
	if err != nil || got != want || got.Decoded < len(b)+10*messageSize {
		t.Errorf("size %+v, error %v: want %+v", got, err, want)
	}
	head, err := Head(m, b)
	must(t, err)
	var left weftv1.PublishRequest
	if err := proto.Unmarshal(head, &left); err != nil || left.GetId() != 7 || left.GetPatch().GetFragment() != "f" || len(left.GetPatch().GetTables()) != 0 {
		t.Errorf("the head is %v, error %v", &left, err)
	}
	for n := range b {
		if _, err := Measure(m, b[:n]); err == nil && proto.Unmarshal(b[:n], &left) != nil {
			t.Errorf("the first %d bytes are measured and cannot be decoded", n)
		}
	}
}

func TestSizeCheck(t *testing.T) {
	for _, tt := range []struct {
		size Size
		text string
	}{
		{Size{Tables: MaxTables}, ""},
		{Size{Tables: MaxTables + 1}, "it has 65 tables: at most 64 are allowed"},
		{Size{Fragments: 2, Tables: MaxTables + 1}, ""},
		{Size{Fragments: MaxPlan + 1}, "it has 1001 fragments"},
		{Size{Elements: MaxElements + 1}, "elements"},
		{Size{Decoded: MaxDecoded + 1}, "bytes after it is decoded: at most 268435456"},
	} {
		err := tt.size.Check(nil, nil)
		if (err == nil) != (tt.text == "") || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%+v: error %v: want %q", tt.size, err, tt.text)
		}
	}
}

// TestSizeCheckOfAPublisher compares requests with what a publisher may hold beside what it
// holds: it may send as much again, or remove it.
func TestSizeCheckOfAPublisher(t *testing.T) {
	control := configured(t, "limits: {rules: 10, elements: 20}")
	held := func() (rules, elements int) { return 4, 5 }
	for _, tt := range []struct {
		size Size
		text string
	}{
		{Size{Rules: 10, Elements: 20}, ""},
		{Size{Rules: 9, Objects: 5, Elements: 25}, ""},
		{Size{Rules: 10, Objects: 5}, "publisher p sends a snapshot with at least 11 rules: at most 10 are allowed (limits.rules"},
		{Size{Elements: 26}, "publisher p sends a snapshot with at least 21 elements: at most 20 are allowed (limits.elements"},
		{Size{Tables: MaxTables + 1}, "it has 65 tables"},
	} {
		err := tt.size.Check(control.Publisher("p"), held)
		if (err == nil) != (tt.text == "") || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%+v: error %v: want %q", tt.size, err, tt.text)
		}
		b := NewSnapshot(Config{}, desired.Key{Publisher: "p", Name: "f"}, nowhere{})
		if err == nil {
			continue
		}
		b.RejectSize(err)
		b.Wait()
		_, finished := b.Finish()
		var rejected *RejectedError
		refused := errors.Is(err, access.ErrExceeded)
		if !errors.As(finished, &rejected) || rejected.Violations[0].GetReason() != weftv1.Violation_REASON_LIMIT || (len(rejected.Refusals) == 1) != refused {
			t.Errorf("%+v: the update ends with %v", tt.size, finished)
		}
	}
}
