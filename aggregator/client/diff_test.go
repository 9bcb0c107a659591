package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// drawFragment draws a fragment out of few names and values, so that two of them
// have much in common.
func drawFragment(t *rapid.T) *weftv1.Fragment {
	some := func(label string, values ...string) []string {
		return rapid.SliceOfDistinct(rapid.SampledFrom(values), rapid.ID).Draw(t, label)
	}
	one := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	f := &weftv1.Fragment{Name: "f", Priority: int32(max(0, rapid.IntRange(-9, 1).Draw(t, "priority")))} //nolint:gosec // small
	for _, name := range append([]string{"t"}, some("tables", "u")...) {
		table := &weftv1.Table{Family: "ip", Name: name}
		if rapid.IntRange(0, 9).Draw(t, "comment") == 0 {
			table.Comment = "other"
		}
		for _, n := range some("chains", "c", "d", "e") {
			c := &weftv1.Chain{Name: n, Policy: one("policy", "", "drop")}
			for _, text := range some("rules", "accept", "drop", "counter") {
				c.Rules = append(c.Rules, &weftv1.Rule{Text: text})
			}
			table.Chains = append(table.Chains, c)
		}
		for _, n := range some("objects", "a", "b") {
			table.Objects = append(table.Objects, &weftv1.Object{Kind: one("kind", "counter", "quota"), Name: n, Text: one("text", "", "1")})
		}
		for _, n := range some("flowtables", "a", "b") {
			table.Flowtables = append(table.Flowtables, &weftv1.Flowtable{Name: n, Priority: one("priority", "0", "1")})
		}
		for i, n := range some("sets", "r", "s", "m", "n") {
			s := &weftv1.Set{Name: n, Type: "ipv4_addr", Comment: one("set comment", "", "x")}
			for _, key := range some("elements", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.1.0.0/16", "10.0.0.3/32") {
				s.Elements = append(s.Elements, &weftv1.Element{Key: key, Value: one("value", "", "v"), Comment: one("element comment", "", "c")})
			}
			if i%2 == 0 {
				table.Sets = append(table.Sets, s)
			} else {
				table.Maps = append(table.Maps, s)
			}
		}
		f.Tables = append(f.Tables, table)
	}
	return f
}

// applied applies a patch as PROTOCOL.md says, with keys as the kernel sees them.
func applied(t *rapid.T, f *weftv1.Fragment, p *weftv1.Patch) *weftv1.Fragment {
	f = proto.CloneOf(f)
	for _, m := range p.GetTables() {
		i := slices.IndexFunc(f.GetTables(), func(t *weftv1.Table) bool { return t.GetName() == m.GetName() })
		if i < 0 {
			t.Fatalf("patch of table %s, which the fragment does not have", m.GetName())
		}
		table := f.GetTables()[i]
		table.Chains = replaced(table.GetChains(), m.GetDeleteChains(), m.GetPutChains(), (*weftv1.Chain).GetName)
		table.Flowtables = replaced(table.GetFlowtables(), m.GetDeleteFlowtables(), m.GetPutFlowtables(), (*weftv1.Flowtable).GetName)
		var gone []string
		for _, n := range m.GetDeleteObjects() {
			gone = append(gone, n.GetKind()+n.GetName())
		}
		table.Objects = replaced(table.GetObjects(), gone, m.GetPutObjects(), func(o *weftv1.Object) string { return o.GetKind() + o.GetName() })
		table.Sets = replaced(table.GetSets(), m.GetDeleteSets(), m.GetPutSets(), (*weftv1.Set).GetName)
		table.Maps = replaced(table.GetMaps(), m.GetDeleteSets(), m.GetPutMaps(), (*weftv1.Set).GetName)
		for _, e := range m.GetElements() {
			all := slices.Concat(table.GetSets(), table.GetMaps())
			i := slices.IndexFunc(all, func(s *weftv1.Set) bool { return s.GetName() == e.GetSet() })
			remove := make([]string, len(e.GetRemove()))
			for i, key := range e.GetRemove() {
				remove[i] = strings.TrimSuffix(key, "/32")
			}
			all[i].Elements = replaced(all[i].GetElements(), remove, e.GetAdd(), kernelKey)
		}
	}
	return f
}

func kernelKey(e *weftv1.Element) string { return strings.TrimSuffix(e.GetKey(), "/32") }

func replaced[T any](list []T, remove []string, put []T, name func(T) string) []T {
	out := slices.DeleteFunc(slices.Clone(list), func(o T) bool { return slices.Contains(remove, name(o)) })
	for _, p := range put {
		out = slices.DeleteFunc(out, func(o T) bool { return name(o) == name(p) })
		out = append(out, proto.Clone(any(p).(proto.Message)).(T)) //nolint:forcetypeassert // all are messages
	}
	return out
}

// meaning prints a fragment without the order that means nothing.
func meaning(f *weftv1.Fragment) string {
	var lines []string
	for _, t := range f.GetTables() {
		lines = append(lines, fmt.Sprint(t.GetName(), Declaration(t)))
		for _, c := range t.GetChains() {
			lines = append(lines, fmt.Sprint(t.GetName(), c))
		}
		for _, o := range t.GetObjects() {
			lines = append(lines, fmt.Sprint(t.GetName(), o))
		}
		for _, o := range t.GetFlowtables() {
			lines = append(lines, fmt.Sprint(t.GetName(), o))
		}
		for i, s := range slices.Concat(t.GetSets(), t.GetMaps()) {
			name := fmt.Sprint(t.GetName(), i < len(t.GetSets()), s.GetName())
			lines = append(lines, fmt.Sprint(name, Declaration(s)))
			last := map[string]string{}
			for _, e := range s.GetElements() {
				last[kernelKey(e)] = fmt.Sprint(name, kernelKey(e), e.GetValue(), e.GetComment())
			}
			for _, line := range last {
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	return fmt.Sprint(Declaration(f), strings.Join(lines, "\n"))
}

// TestPatchEqualsSnapshot draws two fragments: the patch from one to the other
// leads to the other, and there is none only if they mean the same.
func TestPatchEqualsSnapshot(t *testing.T) {
	patches := 0
	rapid.Check(t, func(rt *rapid.T) {
		from, to := drawFragment(rt), drawFragment(rt)
		if rapid.IntRange(0, 1).Draw(rt, "same tables") == 0 {
			to.Tables, to.Priority = to.GetTables()[:1], from.GetPriority()
			from.Tables = from.GetTables()[:1]
			to.Tables[0].Comment = from.GetTables()[0].GetComment()
		}
		fromBefore, toBefore := proto.CloneOf(from), proto.CloneOf(to)
		p, ok := diff(from, to)
		if !proto.Equal(from, fromBefore) || !proto.Equal(to, toBefore) {
			rt.Fatal("a fragment was changed")
		}
		if !ok {
			return
		}
		patches++
		if got, want := meaning(applied(rt, from, p)), meaning(to); got != want {
			rt.Fatalf("patch %v\nleads to %s\nwant %s", p, got, want)
		}
		if same, ok := diff(to, proto.CloneOf(to)); same != nil || !ok {
			rt.Fatalf("a fragment differs from itself: %v", same)
		}
	})
	if patches == 0 {
		t.Fatal("there was no patch: the test does not test")
	}
}

// TestSmallestPatch has differences, and the patches that state them.
func TestSmallestPatch(t *testing.T) {
	fragment := func(edit func(*weftv1.Table)) *weftv1.Fragment {
		table := &weftv1.Table{Family: "ip", Name: "t", Chains: []*weftv1.Chain{{Name: "c", Rules: []*weftv1.Rule{{Text: "accept"}}}}}
		table.Sets = []*weftv1.Set{{Name: "s", Type: "ipv4_addr", Elements: []*weftv1.Element{{Key: "10.0.0.1"}, {Key: "10.0.0.2"}}}}
		edit(table)
		return &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{table}}
	}
	key := func(keys ...string) func(*weftv1.Table) {
		return func(t *weftv1.Table) {
			t.Sets[0].Elements = nil
			for _, k := range keys {
				t.Sets[0].Elements = append(t.Sets[0].Elements, &weftv1.Element{Key: k})
			}
		}
	}
	packed := func(keys string) func(*weftv1.Table) {
		return func(t *weftv1.Table) {
			t.Sets[0].Elements, t.Sets[0].Packed = nil, []*weftv1.PackedElements{{Count: 1, Keys: []byte(keys)}}
		}
	}
	none := func(*weftv1.Table) {}
	for name, tt := range map[string]struct {
		from, to *weftv1.Fragment
		want     string
	}{
		"nothing":             {fragment(none), fragment(none), "<nil>"},
		"another order":       {fragment(none), fragment(key("10.0.0.2", "10.0.0.1")), "<nil>"},
		"elements":            {fragment(none), fragment(key("10.0.0.3", "10.0.0.1")), `elements:{set:"s" remove:"10.0.0.2" add:{key:"10.0.0.3"}}`},
		"two spellings":       {fragment(key("10.0.0.1", "10.0.0.1/32")), fragment(key("10.0.0.1")), `put_sets:{name:"s" type:"ipv4_addr" elements:{key:"10.0.0.1"}}`},
		"a name and a number": {fragment(key("tcp", "6")), fragment(key("6")), `put_sets:{name:"s" type:"ipv4_addr" elements:{key:"6"}}`},
		"a range":             {fragment(key("10.0.0.0-10.0.0.3", "10.0.0.0/30")), fragment(key("10.0.0.0/30")), `put_sets:{name:"s" type:"ipv4_addr" elements:{key:"10.0.0.0/30"}}`},
		"packed elements":     {fragment(packed("\x0a\x00\x00\x01")), fragment(packed("\x0a\x00\x00\x02")), `put_sets:{name:"s" type:"ipv4_addr" packed:{count:1 keys:"\n\x00\x00\x02"}}`},
		"the same packed":     {fragment(packed("\x0a\x00\x00\x01")), fragment(packed("\x0a\x00\x00\x01")), "<nil>"},
		"a chain":             {fragment(none), fragment(func(t *weftv1.Table) { t.Chains[0].Rules = nil }), `put_chains:{name:"c"}`},
		"no chain":            {fragment(none), fragment(func(t *weftv1.Table) { t.Chains = nil }), `delete_chains:"c"`},
		"a map now":           {fragment(none), fragment(func(t *weftv1.Table) { t.Sets, t.Maps = nil, t.GetSets() }), "snapshot"},
		"a table's comment":   {fragment(none), fragment(func(t *weftv1.Table) { t.Comment = "x" }), "snapshot"},
		"another table":       {fragment(none), fragment(func(t *weftv1.Table) { t.Name = "u" }), "snapshot"},
		"a chain twice":       {fragment(none), fragment(func(t *weftv1.Table) { t.Chains = append(t.Chains, t.Chains[0]) }), "snapshot"},
	} {
		p, ok := diff(tt.from, tt.to)
		got := "snapshot"
		if ok && p == nil {
			got = "<nil>"
		} else if ok {
			got = strings.Join(strings.Fields(fmt.Sprint(p)), " ")
			got = strings.TrimSuffix(strings.TrimPrefix(got, `fragment:"f" tables:{family:"ip" name:"t" `), "}")
		}
		if got != tt.want {
			t.Errorf("%s: %s: want %s", name, got, tt.want)
		}
	}
}

// TestRetriesSlowDown has a resync refused again and again.
func TestRetriesSlowDown(t *testing.T) {
	p, f := defaultPace(), &fragment{}
	last := f.delay
	for range 20 {
		f.later(p)
		if f.delay < last || f.delay > p.maxRetry || f.retry.IsZero() {
			t.Fatalf("delay %v after %v", f.delay, last)
		}
		last = f.delay
	}
	if last != p.maxRetry {
		t.Fatalf("delay %v in the end", last)
	}
	for range 100 {
		if d := jitter(p.maxRetry); d > p.maxRetry || d < p.maxRetry*4/5 {
			t.Fatalf("jitter of %v is %v", p.maxRetry, d)
		}
	}
	f.commit(&message{}, 1)
	if f.delay != 0 {
		t.Fatalf("delay %v after a success", f.delay)
	}
}

func TestRejectedErrorFormats(t *testing.T) {
	err := &RejectedError{Fragment: "list", Violations: []*weftv1.Violation{
		{Object: &weftv1.ObjectName{Kind: "rule", Family: "ip", Table: "demo", Name: "input", Index: 2}, Message: "unknown field \"dprot\"", Line: 1, Column: 5, Excerpt: "tcp dprot 80\n    ^", Reason: weftv1.Violation_REASON_SYNTAX},
		{Object: &weftv1.ObjectName{Kind: "element", Family: "ip", Table: "demo", Name: "s", Key: "x"}, Message: "not an address"},
	}}
	const oneLine = `fragment list rejected: rule ip demo input #2: 1:5: unknown field "dprot" (and 1 more)`
	const detail = `fragment list rejected:
  rule ip demo input #2: 1:5: unknown field "dprot"
    tcp dprot 80
        ^
  element ip demo s { x }: not an address`
	wrapped := fmt.Errorf("apply list: %w", err)
	for format, want := range map[string]string{"%v": oneLine, "%s": oneLine, "%+v": detail} {
		if got := fmt.Sprintf(format, err); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", format, got, want)
		}
	}
	if got := wrapped.Error(); got != "apply list: "+oneLine {
		t.Errorf("wrapped: %s", got)
	}
	if !err.Has(weftv1.Violation_REASON_SYNTAX) || err.Has(weftv1.Violation_REASON_KERNEL) {
		t.Error("Has is wrong")
	}
}

func TestRejectedErrorIsItsReasons(t *testing.T) {
	sentinels := map[string]error{
		"permission": ErrPermission, "limit": ErrLimit, "taken over": ErrTakenOver, "unavailable": ErrUnavailable, "too large": ErrTooLarge,
	}
	for reason, want := range map[weftv1.Violation_Reason]string{
		weftv1.Violation_REASON_PERMISSION: "permission", weftv1.Violation_REASON_LIMIT: "limit",
		weftv1.Violation_REASON_TAKEN_OVER: "taken over", weftv1.Violation_REASON_SYNTAX: "",
	} {
		err := fmt.Errorf("apply: %w", &RejectedError{Violations: []*weftv1.Violation{{}, {Reason: reason}}})
		for name, s := range sentinels {
			if is := errors.Is(err, s); is != (name == want) {
				t.Errorf("%v: Is(%v) is %v", reason, s, is)
			}
		}
	}
}

func TestRefusalsThatPass(t *testing.T) {
	passing := map[weftv1.Violation_Reason]bool{
		weftv1.Violation_REASON_CONFLICT: true, weftv1.Violation_REASON_REFERENCE: true, weftv1.Violation_REASON_KERNEL: true,
		weftv1.Violation_REASON_PERMISSION: true, weftv1.Violation_REASON_LIMIT: true, weftv1.Violation_REASON_UNCONFIRMED: true,
	}
	for n := range weftv1.Violation_Reason_name {
		r := weftv1.Violation_Reason(n)
		alone := &RejectedError{Violations: []*weftv1.Violation{{Reason: r}}}
		if alone.passing() != passing[r] {
			t.Errorf("%v: passing is %v", r, alone.passing())
		}
		mixed := &RejectedError{Violations: []*weftv1.Violation{{Reason: r}, {Reason: weftv1.Violation_REASON_SYNTAX}}}
		if mixed.passing() {
			t.Errorf("%v and a syntax error are passing", r)
		}
	}
	if (&RejectedError{Violations: []*weftv1.Violation{{Reason: 99}}}).passing() || (&RejectedError{}).passing() {
		t.Error("an unknown reason is passing")
	}
}

func TestFromStatus(t *testing.T) {
	for code, want := range map[codes.Code]error{
		codes.Unavailable: ErrUnavailable, codes.PermissionDenied: ErrPermission, codes.Unauthenticated: ErrPermission,
		codes.NotFound: ErrNotFound, codes.ResourceExhausted: ErrLimit, codes.InvalidArgument: ErrInvalid,
		codes.Unimplemented: errors.ErrUnsupported, codes.Canceled: context.Canceled, codes.DeadlineExceeded: context.DeadlineExceeded,
	} {
		err := fromStatus("f", status.Error(code, "why"))
		if !errors.Is(err, want) || errors.Is(err, ErrTooLarge) || status.Code(err) != code {
			t.Errorf("%v became %v", code, err)
		}
	}
	if _, err := new(Client).Plan(t.Context(), &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{{Nft: strings.Repeat("#", MaxMessage)}}}); !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrLimit) {
		t.Errorf("a message that is too large became %v", err)
	}
	internal := status.Error(codes.Internal, "bug")
	if err := fromStatus("f", internal); !errors.Is(err, internal) {
		t.Errorf("an internal error became %v", err)
	}
	st, err := status.New(codes.ResourceExhausted, "x").WithDetails(&weftv1.Rejected{Violations: []*weftv1.Violation{{Message: "m"}}})
	if err != nil {
		t.Fatal(err)
	}
	var r *RejectedError
	if err := fromStatus("f", st.Err()); !errors.As(err, &r) || r.Fragment != "f" || len(r.Violations) != 1 {
		t.Errorf("details became %v", err)
	}
	if fromStatus("f", nil) != nil {
		t.Error("nil became an error")
	}
}
