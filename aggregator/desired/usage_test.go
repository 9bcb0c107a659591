package desired

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// checkUsage recomputes what every publisher holds.
func checkUsage(t tester, s *State) {
	t.Helper()
	want := map[string]Usage{}
	for key, f := range s.fragments {
		u, shadowed := want[key.Publisher], 0
		before := u
		u.Fragments++
		for _, h := range f.tables {
			for _, sh := range sharesOf[*objectShare](h) {
				u.Objects++
				u.Memory += sh.decl.usage().Memory
				u.Bytes += len(sh.decl.id().Name)
				if o := sh.decl.object; o != nil {
					u.Bytes += len(definition(o)) + len(o.Comment)
				} else {
					u.Bytes += len(strings.Join(sh.decl.flowtable.Devices, ""))
				}
			}
			for _, sh := range sharesOf[*chainShare](h) {
				u.Chains++
				u.BaseChains += count(sh.decl.Base != nil)
				u.Memory += cost.Chain(sh.decl.Base != nil)
				u.Bytes += len(sh.decl.Name) + len(sh.decl.Comment)
				for _, r := range sh.rules {
					u.Rules++
					if !r.adopted {
						u.Bytes += len(r.rule.Text) + len(r.rule.Comment)
						u.Memory += cost.Rule(r.rule)
						for _, a := range r.rule.Anonymous {
							u.Anonymous += len(a.Elements)
						}
					}
				}
			}
			for _, sh := range sharesOf[*setShare](h) {
				u.Sets++
				u.Elements += sh.elements.Len()
				u.Bytes += len(sh.decl.Name) + len(sh.decl.Comment)
				var content cost.Content
				for _, e := range sh.elements.All() {
					content.Add(sh.decl, &e, 1)
					u.Bytes += len(e.Key) + len(e.KeyEnd) + len(e.Data) + len(e.Comment) + len(e.State)
				}
				u.Memory += content.Memory(sh.decl)
				shadowed += sh.shadowed
			}
		}
		if st := f.status(); st.Rules != u.Rules-before.Rules || st.Elements != u.Elements-before.Elements || st.Shadowed != shadowed {
			t.Errorf("fragment %s has status %+v, want %d rules, %d elements, %d shadowed", f, st, u.Rules-before.Rules, u.Elements-before.Elements, shadowed)
		}
		want[key.Publisher] = u
	}
	if !maps.Equal(s.usage, want) {
		t.Errorf("usage %v, want %v", s.usage, want)
	}
}

// most is a limit of the number of elements.
func most(elements int) Limit {
	return func(before, after Usage, _ Effect) error {
		if after.Elements <= elements || after.Elements <= before.Elements {
			return nil
		}
		return fmt.Errorf("%d elements", after.Elements)
	}
}

func TestApplyWithinCountsAllFragmentsOfAPublisher(t *testing.T) {
	h := newHarness(t)
	other := Key{policy.Publisher, "other"}
	h.commit(
		snapshot(policy, 0, in(ipWeft, addrSet("a", member("10.0.0.1"), member("10.0.0.2")), regular("c", rule("accept")))),
		snapshot(Key{"somebody", "else"}, 0, in(ipWeft, addrSet("b", member("10.0.0.9")))))
	if got, want := h.Usage(policy.Publisher), (Usage{Memory: h.Usage(policy.Publisher).Memory, Fragments: 1, Chains: 1, Rules: 1, Sets: 1, Elements: 2, Bytes: len("a") + 2*4 + len("c") + len("accept")}); got != want {
		t.Fatalf("usage %+v, want %+v", got, want)
	}
	before, state := h.Usage(policy.Publisher), stateText(h.State)
	err := h.ApplyWithin(snapshot(other, 0, in(ipWeft, addrSet("o", member("10.0.0.3"), member("10.0.0.4")))), most(3), nil)
	if err == nil || err.Error() != "4 elements" {
		t.Fatalf("over the limit: %v", err)
	}
	if got := h.Usage(policy.Publisher); got != before || stateText(h.State) != state {
		t.Fatalf("a refused update left usage %+v, want %+v", got, before)
	}
	if err := h.ApplyWithin(snapshot(other, 0, in(ipWeft, addrSet("o", member("10.0.0.3")))), most(3), nil); err != nil {
		t.Fatal(err)
	}
	// What is over a limit that was lowered may stay, and shrink.
	less := patch(policy, in(ipWeft, Elements{Set: "a", Remove: []nftset.Element{member("10.0.0.1")}}))
	if err := h.ApplyWithin(less, most(1), nil); err != nil {
		t.Fatalf("an update that gives back: %v", err)
	}
	// What the kernel refuses is given back.
	h.Rollback()
	if got := h.Usage(policy.Publisher); got != before {
		t.Errorf("usage after rollback %+v, want %+v", got, before)
	}
	h.commit(snapshot(policy, 0))
	if got := h.Usage(policy.Publisher); got != (Usage{}) {
		t.Errorf("usage of nothing: %+v", got)
	}
}

// TestPatchesReachWhatASnapshotCanSend bounds a fragment however it grows.
func TestPatchesReachWhatASnapshotCanSend(t *testing.T) {
	h := newHarness(t)
	tables := func(from, to int) (out []TableUpdate) {
		for i := from; i < to; i++ {
			out = append(out, in(nft.TableID{Family: nft.FamilyIP, Name: fmt.Sprintf("t%d", i)}, regular("c")))
		}
		return out
	}
	h.commit(snapshot(policy, 0, tables(0, MaxTables)...))
	before := stateText(h.State)
	h.reject(patch(policy, tables(MaxTables, MaxTables+1)...), ReasonLimit, "", "65 tables", "at most 64")
	if stateText(h.State) != before {
		t.Error("a refused patch changed the state")
	}
	h.commit(snapshot(policy, 0, tables(1, MaxTables+1)...))
}
