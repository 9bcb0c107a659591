package publish

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// TestObjects follows patches of objects and flowtables: the content is that of the
// snapshot that they lead to, and what it was made from stays as it is.
func TestObjects(t *testing.T) {
	counter := func(name, text string) *weftv1.Object {
		return &weftv1.Object{Kind: "counter", Name: name, Text: text}
	}
	fragment := func(objects []*weftv1.Object, flowtables ...string) *weftv1.Fragment {
		m := &weftv1.Table{Family: "ip", Name: "demo", Flags: []string{"dormant"}, Objects: objects}
		for _, name := range flowtables {
			m.Flowtables = append(m.Flowtables, &weftv1.Flowtable{Name: name})
		}
		return &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{m}}
	}
	first := fragment([]*weftv1.Object{counter("a", ""), counter("b", ""), {Kind: "quota", Name: "a", Text: "1 mbytes"}}, "fast", "slow")
	c, err := newContent(first)
	if err != nil {
		t.Fatal(err)
	}
	before := proto.CloneOf(first)
	changed := c.clone()
	err = changed.patch(&weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{
		Family: "ip", Name: "demo",
		DeleteObjects: []*weftv1.ObjectReference{{Kind: "counter", Name: "a"}}, DeleteFlowtables: []string{"fast", "missing"},
		PutObjects:    []*weftv1.Object{counter("b", "packets 1 bytes 2"), counter("c", "")},
		PutFlowtables: []*weftv1.Flowtable{{Name: "slow"}, {Name: "new"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	want := fragment([]*weftv1.Object{counter("b", "packets 1 bytes 2"), counter("c", ""), {Kind: "quota", Name: "a", Text: "1 mbytes"}}, "new", "slow")
	if got := changed.fragment(time.Now()); !proto.Equal(got, want) {
		t.Errorf("after the patch %v\nwant %v", got, want)
	}
	if got := c.fragment(time.Now()); !proto.Equal(got, before) || !proto.Equal(first, before) {
		t.Errorf("what the patch was made to is now %v\nwant %v", got, before)
	}
}

// TestJoinedSets declares one set in two parts of a fragment: it has the elements of
// both.
func TestJoinedSets(t *testing.T) {
	part := func(keys ...string) *weftv1.Table {
		s := &weftv1.Set{Name: "s", Type: "ipv4_addr"}
		for _, key := range keys {
			s.Elements = append(s.Elements, &weftv1.Element{Key: key})
		}
		return &weftv1.Table{Family: "ip", Name: "demo", Sets: []*weftv1.Set{s}}
	}
	c, err := newContent(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{part("192.0.2.1", "192.0.2.2"), part("192.0.2.2", "192.0.2.3")}})
	if err != nil {
		t.Fatal(err)
	}
	got := c.fragment(time.Now()).GetTables()
	if len(got) != 1 || len(got[0].GetSets()) != 1 || len(got[0].GetSets()[0].GetElements()) != 3 {
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
	c, err := newContent(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Sets: []*weftv1.Set{set}}}})
	if err != nil {
		t.Fatal(err)
	}
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

// TestJoinedChains declares one chain in two parts of a fragment: it has the rules of
// both.
func TestJoinedChains(t *testing.T) {
	part := func(rule string) *weftv1.Table {
		return &weftv1.Table{Name: "demo", Comment: "ours", Flags: []string{"dormant"}, Chains: []*weftv1.Chain{{Name: "c", Rules: []*weftv1.Rule{{Text: rule}}}}}
	}
	c, err := newContent(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{part("accept"), part("drop")}})
	if err != nil {
		t.Fatal(err)
	}
	got := c.fragment(time.Now()).GetTables()
	if len(got) != 1 || got[0].GetFamily() != "ip" || got[0].GetComment() != "ours" || len(got[0].GetFlags()) != 1 {
		t.Fatalf("the parts were joined to %v", got)
	}
	rules := 0
	for _, chain := range got[0].GetChains() {
		rules += len(chain.GetRules())
	}
	if rules != 2 {
		t.Errorf("the parts were joined to %v", got)
	}
}
