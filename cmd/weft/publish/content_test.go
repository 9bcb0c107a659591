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
	first := fragment([]*weftv1.Object{counter("a", ""), {Kind: "quota", Name: "a", Text: "1 mbytes"}, counter("b", "")}, "fast", "slow")
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
	want := fragment([]*weftv1.Object{{Kind: "quota", Name: "a", Text: "1 mbytes"}, counter("b", "packets 1 bytes 2"), counter("c", "")}, "slow", "new")
	if got := changed.fragment(time.Now()); !proto.Equal(got, want) {
		t.Errorf("after the patch %v\nwant %v", got, want)
	}
	if got := c.fragment(time.Now()); !proto.Equal(got, before) || !proto.Equal(first, before) {
		t.Errorf("what the patch was made to is now %v\nwant %v", got, before)
	}
}
