package desired_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// checkUsage recomputes what every publisher holds.
func checkUsage(t tester, s *merge.State) {
	t.Helper()
	want := map[string]desired.Usage{}
	for key, f := range s.Fragments {
		u, shadowed := want[key.Publisher], 0
		before := u
		u.Fragments++
		for _, h := range f.Tables {
			for _, sh := range sharesOf[*merge.ObjectShare](h) {
				u.Objects++
				u.Memory += sh.Decl.Usage().Memory
				u.Bytes += len(sh.Decl.ID().Name)
				if o := sh.Decl.Object; o != nil {
					u.Bytes += len(merge.Definition(o)) + len(o.Comment)
				} else {
					u.Bytes += len(strings.Join(sh.Decl.Flowtable.Devices, ""))
				}
			}
			for _, sh := range sharesOf[*merge.ChainShare](h) {
				u.Chains++
				u.BaseChains += merge.Count(sh.Decl.Base != nil)
				u.Memory += cost.Chain(sh.Decl.Base != nil)
				u.Bytes += len(sh.Decl.Name) + len(sh.Decl.Comment)
				for _, r := range sh.Rules {
					u.Rules++
					if !r.Adopted {
						u.Bytes += len(r.Rule.Text) + len(r.Rule.Comment)
						u.Memory += cost.Rule(r.Rule)
						for _, a := range r.Rule.Anonymous {
							u.Anonymous += len(a.Elements)
						}
					}
				}
			}
			for _, sh := range sharesOf[*merge.SetShare](h) {
				u.Sets++
				u.Elements += sh.Elements.Len()
				u.Bytes += len(sh.Decl.Name) + len(sh.Decl.Comment)
				var content cost.Content
				for _, e := range sh.Elements.All() {
					content.Add(sh.Decl, &e, 1)
					u.Bytes += len(e.Key) + len(e.KeyEnd) + len(e.Data) + len(e.Comment) + len(e.State)
				}
				u.Memory += content.Memory(sh.Decl)
				shadowed += sh.Shadowed
			}
		}
		if st := views.StatusOf(f); st.Rules != u.Rules-before.Rules || st.Elements != u.Elements-before.Elements || st.Shadowed != shadowed {
			t.Errorf("fragment %s has status %+v, want %d rules, %d elements, %d shadowed", f, st, u.Rules-before.Rules, u.Elements-before.Elements, shadowed)
		}
		want[key.Publisher] = u
	}
	if !maps.Equal(s.Held, want) {
		t.Errorf("usage %v, want %v", s.Held, want)
	}
}

// most is a limit of the number of elements.
func most(elements int) desired.Limit {
	return func(before, after desired.Usage, _ desired.Effect) error {
		if after.Elements <= elements || after.Elements <= before.Elements {
			return nil
		}
		return fmt.Errorf("%d elements", after.Elements)
	}
}

func TestApplyWithinCountsAllFragmentsOfAPublisher(t *testing.T) {
	h := newHarness(t)
	other := desired.Key{policy.Publisher, "other"}
	h.commit(
		snapshot(policy, 0, in(ipWeft, addrSet("a", member("10.0.0.1"), member("10.0.0.2")), regular("c", rule("accept")))),
		snapshot(desired.Key{"somebody", "else"}, 0, in(ipWeft, addrSet("b", member("10.0.0.9")))))
	if got, want := h.Usage(policy.Publisher), (desired.Usage{Memory: h.Usage(policy.Publisher).Memory, Fragments: 1, Chains: 1, Rules: 1, Sets: 1, Elements: 2, Bytes: len("a") + 2*4 + len("c") + len("accept")}); got != want {
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
	// Content over a lowered limit may stay, and shrink.
	less := patch(policy, in(ipWeft, desired.Elements{Set: "a", Remove: []nftset.Element{member("10.0.0.1")}}))
	if err := h.ApplyWithin(less, most(1), nil); err != nil {
		t.Fatalf("an update that gives back: %v", err)
	}
	// Rollback after a refusal of the kernel restores the usage.
	h.Rollback()
	if got := h.Usage(policy.Publisher); got != before {
		t.Errorf("usage after rollback %+v, want %+v", got, before)
	}
	h.commit(snapshot(policy, 0))
	if got := h.Usage(policy.Publisher); got != (desired.Usage{}) {
		t.Errorf("usage of nothing: %+v", got)
	}
}

// TestPatchesReachWhatASnapshotCanSend bounds a fragment however it grows.
func TestPatchesReachWhatASnapshotCanSend(t *testing.T) {
	h := newHarness(t)
	tables := func(from, to int) (out []desired.TableUpdate) {
		for i := from; i < to; i++ {
			out = append(out, in(nft.TableID{Family: nft.FamilyIP, Name: fmt.Sprintf("t%d", i)}, regular("c")))
		}
		return out
	}
	h.commit(snapshot(policy, 0, tables(0, desired.MaxTables)...))
	before := stateText(h.State)
	h.reject(patch(policy, tables(desired.MaxTables, desired.MaxTables+1)...), desired.ReasonLimit, "", "65 tables", "at most 64")
	if stateText(h.State) != before {
		t.Error("a refused patch changed the state")
	}
	h.commit(snapshot(policy, 0, tables(1, desired.MaxTables+1)...))
}
