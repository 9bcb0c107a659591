package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// Keys in several spellings, and one that is none.
var keys = []string{"10.0.0.1", "10.0.0.1/32", "10.0.0.2", "10.0.0.3-10.0.0.3", "10.0.0.4", "10.1.0.0/16", "10.1.0.0-10.1.255.255", "10.0.0.300"}

func drawElements(t *rapid.T, isMap bool) []*weftv1.Element {
	var out []*weftv1.Element
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]int{0, 2, 4, 5}), 0, 4, rapid.ID).Draw(t, "keys") {
		e := &weftv1.Element{Key: keys[key], Comment: rapid.SampledFrom([]string{"", "why"}).Draw(t, "comment")}
		if isMap {
			e.Value = rapid.SampledFrom([]string{"accept", "drop"}).Draw(t, "value")
		}
		out = append(out, e)
	}
	return out
}

func drawSet(t *rapid.T, name string, isMap bool) *weftv1.Set {
	s := &weftv1.Set{Name: name, Type: "ipv4_addr", Flags: []string{"interval"}}
	if isMap {
		s.Type = "ipv4_addr : verdict"
	} else if rapid.Bool().Draw(t, "timeout") {
		s.Flags, s.Timeout = append(s.Flags, "timeout"), durationpb.New(3600e9)
	}
	s.Elements = drawElements(t, isMap)
	return s
}

// drawAffinity draws a map that packets fill, and whether it is called so.
func drawAffinity(t *rapid.T) (maps []*weftv1.Set) {
	if rapid.Bool().Draw(t, "affinity map") {
		maps = append(maps, &weftv1.Set{Name: "a", Type: "ipv4_addr : ipv4_addr . inet_service", Flags: []string{"dynamic"}, Size: 16})
	}
	if rapid.IntRange(0, 2).Draw(t, "affinity") > 0 && len(maps) > 0 {
		maps[0].Role = weftv1.MapRole_MAP_ROLE_AFFINITY
	}
	return maps
}

func drawChain(t *rapid.T, name string) *weftv1.Chain {
	c := &weftv1.Chain{Name: name}
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		c.Rules = append(c.Rules, &weftv1.Rule{Text: rapid.SampledFrom([]string{"ip saddr @s drop", "tcp dport 80 accept", "counter"}).Draw(t, "rule")})
	}
	return c
}

// drawPut draws a snapshot, as tables or as a file.
func drawPut(t *rapid.T, name, table string) *weftv1.PublishRequest {
	m := &weftv1.Table{Family: "ip", Name: table, Comment: rapid.SampledFrom([]string{"", "ours"}).Draw(t, "table comment")}
	for _, n := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"s", "r"}), rapid.ID).Draw(t, "sets") {
		m.Sets = append(m.Sets, drawSet(t, n, false))
	}
	if rapid.Bool().Draw(t, "map") {
		m.Maps = append(m.Maps, drawSet(t, "m", true))
	}
	asFile := rapid.Bool().Draw(t, "as a file")
	if !asFile {
		m.Maps = append(m.Maps, drawAffinity(t)...)
	}
	for _, n := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"c", "d"}), rapid.ID).Draw(t, "chains") {
		m.Chains = append(m.Chains, drawChain(t, n))
	}
	f := &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{m}, Priority: rapid.Int32Range(-1, 1).Draw(t, "priority")}
	if asFile {
		table, err := convert.TableOf(m)
		if err != nil {
			t.Fatal(err)
		}
		f = &weftv1.Fragment{Name: name, Priority: f.GetPriority(), Nft: ruleset.Format([]nft.Table{table})}
	}
	return &weftv1.PublishRequest{Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}}
}

func drawPatch(t *rapid.T, name, table string) *weftv1.PublishRequest {
	m := &weftv1.TablePatch{Family: "ip", Name: table}
	m.DeleteChains = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"c", "d", "e"}), 0, 1, rapid.ID).Draw(t, "delete chains")
	m.DeleteSets = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"s", "r", "m", "a"}), 0, 1, rapid.ID).Draw(t, "delete sets")
	if rapid.IntRange(0, 3).Draw(t, "put set") == 0 {
		m.PutSets = append(m.PutSets, drawSet(t, rapid.SampledFrom([]string{"s", "r"}).Draw(t, "name"), false))
	}
	if rapid.IntRange(0, 3).Draw(t, "put map") == 0 {
		m.PutMaps = append(m.PutMaps, drawSet(t, "m", true))
		m.PutMaps = append(m.PutMaps, drawAffinity(t)...)
	}
	if rapid.IntRange(0, 2).Draw(t, "put chain") == 0 {
		m.PutChains = append(m.PutChains, drawChain(t, rapid.SampledFrom([]string{"c", "d"}).Draw(t, "name")))
	}
	for range rapid.IntRange(0, 2).Draw(t, "element patches") {
		set := rapid.SampledFrom([]string{"s", "r", "m"}).Draw(t, "set")
		e := &weftv1.ElementPatch{Set: set, Add: drawElements(t, set == "m")}
		e.Remove = rapid.SliceOfN(rapid.SampledFrom(keys[:7]), 0, 2).Draw(t, "remove")
		if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
			e.Remove = append(e.Remove, keys[7])
		}
		m.Elements = append(m.Elements, e)
	}
	return &weftv1.PublishRequest{Update: &weftv1.PublishRequest_Patch{Patch: &weftv1.Patch{Fragment: name, Tables: []*weftv1.TablePatch{m}}}}
}

// TestKeptIsWhatTheAggregatorHas sends random updates, some of which are
// refused: the snapshot that would follow a reconnect changes nothing.
func TestKeptIsWhatTheAggregatorHas(t *testing.T) {
	d := start(t, &aggregatortest.Kernel{})
	c := d.Dial(t, "tester")
	n, refused, patched := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		ctx, cancel := context.WithTimeout(context.Background(), aggregatortest.Wait)
		defer cancel()
		name, table := fmt.Sprintf("f%d", n), fmt.Sprintf("t%d", n)
		session := c.Session(client.SessionConfig{})
		defer func() { _ = session.Close() }()
		var k *kept
		for i := range rapid.IntRange(1, 8).Draw(rt, "updates") {
			req := drawPut(rt, name, table)
			if i > 0 && rapid.IntRange(0, 5).Draw(rt, "kind") > 0 {
				req = drawPatch(rt, name, table)
			}
			var err error
			if p := req.GetPatch(); p != nil {
				_, err = session.Patch(ctx, p)
			} else {
				_, err = session.StartPutContent(name, &kept{snapshot: req.GetSnapshot()}).Wait(ctx)
			}
			switch rejected := (*client.RejectedError)(nil); {
			case errors.As(err, &rejected), errors.Is(err, client.ErrNoSnapshot):
				refused++
				continue
			case err != nil:
				rt.Fatal(err)
			}
			if p := req.GetPatch(); p == nil {
				k = &kept{snapshot: req.GetSnapshot()}
			} else if k.Apply(p); k.content == nil {
				rt.Fatalf("accepted by the aggregator but not kept: %v", req)
			}
			if k.content != nil {
				patched++
			}
		}
		if k == nil {
			return
		}
		has, err := c.Get(ctx, "", name)
		if err != nil {
			rt.Fatal(err)
		}
		if got, want := affinity(k.Fragment()), affinity(has.GetFragment()); got != want {
			rt.Fatalf("affinity maps %s are kept: the aggregator has %s", got, want)
		}
		plan, err := c.Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{k.Fragment()}})
		if err != nil || len(plan.GetRejections()) > 0 {
			rt.Fatalf("the kept content is refused: %v, %v\n%v", err, plan.GetRejections(), k.Fragment())
		}
		for _, change := range plan.GetChanges() {
			// Elements with a timeout are renewed, and nothing else changes.
			key, ours := change.GetObject().GetKey(), has.GetFragment().String()
			if change.GetOperation() != weftv1.Change_OPERATION_ADD || change.GetObject().GetKind() != "element" || !strings.Contains(ours, "\""+key+"\"") {
				rt.Fatalf("the kept content is not what the aggregator has: %v\n%v", change, k.Fragment())
			}
		}
	})
	if refused == 0 || patched == 0 {
		t.Fatalf("%d updates refused, %d kept as patched content: the test does not test", refused, patched)
	}
	t.Logf("%d fragments, %d updates refused, %d patched contents", n, refused, patched)
}

// affinity names the affinity maps of a fragment.
func affinity(f *weftv1.Fragment) string {
	var all []string
	for _, m := range f.GetTables() {
		for _, s := range m.GetMaps() {
			if s.GetRole() == weftv1.MapRole_MAP_ROLE_AFFINITY {
				all = append(all, s.GetName())
			}
		}
	}
	return fmt.Sprint(all)
}

// TestContentIsNotChangedByItsSnapshots takes a snapshot with updates on their
// way, and then without.
func TestContentIsNotChangedByItsSnapshots(t *testing.T) {
	line := func(s string) *weftv1.PublishRequest {
		req, _, err := decode([]byte(s))
		must(t, err)
		return req
	}
	check := func(k client.Content, want ...string) {
		t.Helper()
		var got []string
		for _, e := range k.Fragment().GetTables()[0].GetSets()[0].GetElements() {
			got = append(got, e.GetKey())
		}
		if !slices.Equal(got, want) {
			t.Errorf("elements %v, want %v", got, want)
		}
	}
	k := &kept{snapshot: line(declare).GetSnapshot()}
	k.Apply(line(patchLine(2, "10.0.0.2", "")).GetPatch())
	with := k.Clone()
	with.Apply(line(patchLine(3, "10.0.0.3", "10.0.0.1")).GetPatch())
	with.Apply(line(patchLine(4, "10.0.0.4", "")).GetPatch())
	check(with, "10.0.0.2", "10.0.0.3", "10.0.0.4")
	check(k, "10.0.0.1", "10.0.0.2")
}
