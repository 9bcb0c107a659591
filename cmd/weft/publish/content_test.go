package publish

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// contentOf reads the tables of a fragment.
func contentOf(t *testing.T, tables ...*weftv1.Table) *content {
	t.Helper()
	c, err := newContent(&weftv1.Fragment{Name: "f", Tables: tables})
	must(t, err)
	return c
}

// TestObjects follows patches of objects and flowtables: the content is that of the
// snapshot that they lead to, and what it was made from stays as it is.
func TestObjects(t *testing.T) {
	counter := func(name, text string) *weftv1.Object {
		return &weftv1.Object{Kind: "counter", Name: name, Text: text}
	}
	table := func(objects []*weftv1.Object, flowtables ...string) *weftv1.Table {
		m := &weftv1.Table{Family: "ip", Name: "demo", Flags: []string{"dormant"}, Objects: objects}
		for _, name := range flowtables {
			m.Flowtables = append(m.Flowtables, &weftv1.Flowtable{Name: name})
		}
		return m
	}
	quota := &weftv1.Object{Kind: "quota", Name: "a", Text: "1 mbytes"}
	first := table([]*weftv1.Object{counter("a", ""), counter("b", ""), quota}, "fast", "slow")
	c, before := contentOf(t, first), proto.CloneOf(first)
	changed := c.clone()
	must(t, changed.patch(&weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{
		Family: "ip", Name: "demo",
		DeleteObjects: []*weftv1.ObjectReference{{Kind: "counter", Name: "a"}}, DeleteFlowtables: []string{"fast", "missing"},
		PutObjects:    []*weftv1.Object{counter("b", "packets 1 bytes 2"), counter("c", "")},
		PutFlowtables: []*weftv1.Flowtable{{Name: "slow"}, {Name: "new"}},
	}}}))
	want := table([]*weftv1.Object{counter("b", "packets 1 bytes 2"), counter("c", ""), quota}, "new", "slow")
	if got := changed.fragment(time.Now()).GetTables()[0]; !proto.Equal(got, want) {
		t.Errorf("after the patch %v\nwant %v", got, want)
	}
	if got := c.fragment(time.Now()).GetTables()[0]; !proto.Equal(got, before) || !proto.Equal(first, before) {
		t.Errorf("what the patch was made to is now %v\nwant %v", got, before)
	}
}

// TestJoined declares one set and one chain in two parts of a fragment: they have the elements and rules of
// both.
func TestJoined(t *testing.T) {
	part := func(rule string, keys ...string) *weftv1.Table {
		s := &weftv1.Set{Name: "s", Type: "ipv4_addr"}
		for _, key := range keys {
			s.Elements = append(s.Elements, &weftv1.Element{Key: key})
		}
		chain := &weftv1.Chain{Name: "c", Rules: []*weftv1.Rule{{Text: rule}}}
		return &weftv1.Table{Name: "demo", Comment: "ours", Flags: []string{"dormant"}, Sets: []*weftv1.Set{s}, Chains: []*weftv1.Chain{chain}}
	}
	got := contentOf(t, part("accept", "192.0.2.1", "192.0.2.2"), part("drop", "192.0.2.2", "192.0.2.3")).fragment(time.Now()).GetTables()
	if len(got) != 1 || got[0].GetFamily() != "ip" || got[0].GetComment() != "ours" || len(got[0].GetFlags()) != 1 {
		t.Fatalf("the parts were joined to %v", got)
	}
	rules := 0
	for _, chain := range got[0].GetChains() {
		rules += len(chain.GetRules())
	}
	if sets := got[0].GetSets(); rules != 2 || len(sets) != 1 || len(sets[0].GetElements()) != 3 {
		t.Errorf("the parts were joined to %v", got)
	}
}

// TestContentErrors has content that the aggregator rejects too.
func TestContentErrors(t *testing.T) {
	set := &weftv1.Set{Name: "s", Type: "ipv4_addr"}
	bad := &weftv1.Set{Name: "s", Type: "ipv4_addr", Elements: []*weftv1.Element{{Key: "here"}}}
	for name, tables := range map[string][]*weftv1.Table{
		"family":        {{Family: "ipx", Name: "demo"}},
		"type":          {{Family: "ip", Name: "demo", Sets: []*weftv1.Set{{Name: "s", Type: "none"}}}},
		"element":       {{Family: "ip", Name: "demo", Sets: []*weftv1.Set{bad}}},
		"joined":        {{Family: "ip", Name: "demo", Sets: []*weftv1.Set{set, bad}}},
		"element's map": {{Family: "ip", Name: "demo", Maps: []*weftv1.Set{{Name: "m", Type: "ipv4_addr"}}}},
	} {
		if c, err := newContent(&weftv1.Fragment{Name: "f", Tables: tables}); err == nil {
			t.Errorf("%s: %v", name, c.fragment(time.Now()))
		}
	}
	c := contentOf(t, &weftv1.Table{Family: "ip", Name: "demo", Sets: []*weftv1.Set{set}})
	for name, patch := range map[string]*weftv1.TablePatch{
		"family":     {Family: "ipx", Name: "demo"},
		"no set":     {Family: "ip", Name: "demo", Elements: []*weftv1.ElementPatch{{Set: "missing"}}},
		"added":      {Family: "ip", Name: "demo", Elements: []*weftv1.ElementPatch{{Set: "s", Add: []*weftv1.Element{{Key: "here"}}}}},
		"removed":    {Family: "ip", Name: "demo", Elements: []*weftv1.ElementPatch{{Set: "s", Remove: []string{"here"}}}},
		"put":        {Family: "ip", Name: "demo", PutSets: []*weftv1.Set{bad}},
		"other type": {Family: "ip", Name: "demo", PutMaps: []*weftv1.Set{{Name: "s", Type: "none"}}},
	} {
		if err := c.clone().patch(&weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{patch}}); err == nil {
			t.Errorf("patch with a wrong %s: no error", name)
		}
	}
}
