package entries_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/entries"
)

// memory is a Writer.
type memory map[string]string

func (m memory) Has(key string) bool { _, ok := m[key]; return ok }

func (m memory) Put(e entries.Entry) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(e.Value)
	if err != nil {
		panic(err)
	}
	m[e.Key] = string(b)
}

func (m memory) Delete(key string) { delete(m, key) }

func (m memory) DeleteBelow(key string) {
	maps.DeleteFunc(m, func(k, _ string) bool { return strings.HasPrefix(k, key+" ") })
}

func of(f *weftv1.Fragment) memory {
	m := memory{}
	for _, e := range entries.Of(f) {
		m.Put(e)
	}
	return m
}

// set returns a set whose name begins like those of others, so that a prefix of a key that is too
// short would meet them too.
func set(n int, elements ...string) *weftv1.Set {
	s := &weftv1.Set{Name: strings.Repeat("s", n+1), Type: "ipv4_addr"}
	for _, e := range elements {
		s.Elements = append(s.Elements, &weftv1.Element{Key: e})
	}
	return s
}

// TestOf names every entry of a fragment, in order.
func TestOf(t *testing.T) {
	f := &weftv1.Fragment{Name: "f", Priority: 3, Tables: []*weftv1.Table{{
		Family: "ip", Name: "t", Comment: "c",
		Chains:     []*weftv1.Chain{{Name: "in"}},
		Objects:    []*weftv1.Object{{Kind: "counter", Name: "hits"}},
		Flowtables: []*weftv1.Flowtable{{Name: "ft"}},
		Sets:       []*weftv1.Set{set(0, "10.0.0.2", "10.0.0.1")},
		Maps:       []*weftv1.Set{{Name: "m", Type: "ipv4_addr : verdict", Elements: []*weftv1.Element{{Key: "10.0.0.1", Value: "drop"}}}},
	}}}
	var got []string
	for _, e := range entries.Of(f) {
		got = append(got, e.Key)
	}
	want := []string{
		"head", "ip t", "ip t chain in", "ip t flowtable ft", "ip t object counter hits",
		"ip t set m", "ip t set m 10.0.0.1", "ip t set s", "ip t set s 10.0.0.1", "ip t set s 10.0.0.2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("entries %q, want %q", got, want)
	}
	if head, ok := entries.Of(f)[0].Value.(*weftv1.Fragment); !ok || head.GetPriority() != 3 || len(head.GetTables()) != 0 {
		t.Errorf("the head is %v", head)
	}
}

// TestPatch applies random patches to the entries of a fragment, which must be those of the
// fragment that the patches make.
func TestPatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	const sets, addresses = 4, 6
	members := map[int]map[string]bool{}
	current := func() *weftv1.Fragment {
		table := &weftv1.Table{Family: "inet", Name: "t"}
		for _, n := range slices.Sorted(maps.Keys(members)) {
			table.Sets = append(table.Sets, set(n, slices.Sorted(maps.Keys(members[n]))...))
		}
		return &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{table}}
	}
	got := of(current())
	for range 2000 {
		p, n := &weftv1.TablePatch{Family: "inet", Name: "t"}, rnd.IntN(sets)
		a := fmt.Sprintf("10.0.0.%d", rnd.IntN(addresses))
		switch {
		case members[n] == nil:
			members[n] = map[string]bool{a: true}
			p.PutSets = []*weftv1.Set{set(n, a)}
		case rnd.IntN(8) == 0:
			delete(members, n)
			p.DeleteSets = []string{set(n).GetName()}
		case rnd.IntN(8) == 0: // declared again, with other elements
			members[n] = map[string]bool{a: true}
			p.PutSets = []*weftv1.Set{set(n, a)}
		case members[n][a]:
			delete(members[n], a)
			p.Elements = []*weftv1.ElementPatch{{Set: set(n).GetName(), Remove: []string{a}}}
		default:
			members[n][a] = true
			p.Elements = []*weftv1.ElementPatch{{Set: set(n).GetName(), Add: []*weftv1.Element{{Key: a}}}}
		}
		entries.Patch(got, p)
		if want := of(current()); !maps.Equal(got, want) {
			t.Fatalf("after %v: %v, want %v", p, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}
