package render

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
	"github.com/weft-proxy/weft/nft"
	nftfile "github.com/weft-proxy/weft/nft/ruleset"
)

// ruleset is what fragments and patches amount to: the aggregator's semantics
// in its simplest form, and strict where a patch has no reason to be sloppy.
type ruleset map[string]*tableContent

type tableContent struct {
	family   string
	chains   map[string]*weftv1.Chain
	sets     map[string]*setContent
	counters []*weftv1.Object
}

type setContent struct {
	declaration *weftv1.Set
	isMap       bool
	elements    map[string]*weftv1.Element
}

func load(t testing.TB, f *weftv1.Fragment) ruleset {
	t.Helper()
	out := make(ruleset)
	for _, in := range f.GetTables() {
		c := &tableContent{family: in.GetFamily(), chains: make(map[string]*weftv1.Chain), sets: make(map[string]*setContent), counters: in.GetObjects()}
		for _, ch := range in.GetChains() {
			if c.chains[ch.GetName()] != nil {
				t.Fatalf("chain %s twice", ch.GetName())
			}
			c.chains[ch.GetName()] = ch
		}
		c.declare(t, in.GetSets(), in.GetMaps())
		out[in.GetFamily()] = c
	}
	return out
}

// declare adds sets and maps with their elements.
func (c *tableContent) declare(t testing.TB, sets, maps []*weftv1.Set) {
	t.Helper()
	for i, d := range slices.Concat(sets, maps) {
		if c.sets[d.GetName()] != nil {
			t.Errorf("set or map %s is declared twice", d.GetName())
		}
		s := &setContent{declaration: d, isMap: i >= len(sets), elements: make(map[string]*weftv1.Element)}
		c.sets[d.GetName()] = s
		s.add(t, append(d.GetElements(), s.unpack(t, c.family, d.GetPacked(), true)...))
	}
}

// add adds elements, each once.
func (s *setContent) add(t testing.TB, elements []*weftv1.Element) {
	t.Helper()
	seen := make(map[string]bool)
	for _, e := range elements {
		k := e.GetKey()
		if was := s.elements[k]; seen[k] || was != nil && was.GetValue() == e.GetValue() && was.GetComment() == e.GetComment() {
			t.Errorf("%s gets %q again", s.declaration.GetName(), k)
		}
		s.elements[k], seen[k] = e, true
	}
}

// unpack returns packed elements as text.
func (s *setContent) unpack(t testing.TB, family string, packed []*weftv1.PackedElements, data bool) []*weftv1.Element {
	t.Helper()
	f, err := nft.ParseFamily(family)
	must(t, err)
	d, err := convert.CompileSet(f, s.declaration, s.isMap)
	must(t, err)
	out, err := convert.Unpack(d, packed, data)
	must(t, err)
	return out
}

// answered returns a fragment as the aggregator returns it: its elements are text.
func answered(t testing.TB, f *weftv1.Fragment) *weftv1.Fragment {
	t.Helper()
	req, err := convert.Text()(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}})
	must(t, err)
	return req.GetSnapshot()
}

// patch applies a patch: what is removed must exist, what is added must differ.
func (r ruleset) patch(t testing.TB, p *weftv1.Patch) {
	t.Helper()
	for _, in := range p.GetTables() {
		c := r[in.GetFamily()]
		if c == nil {
			t.Fatalf("patch of table %s, which is not there", in.GetFamily())
		}
		for _, name := range in.GetDeleteSets() {
			if c.sets[name] == nil {
				t.Errorf("patch deletes map or set %s, which is not there", name)
			}
			delete(c.sets, name)
		}
		c.declare(t, in.GetPutSets(), in.GetPutMaps())
		for _, ch := range in.GetPutChains() {
			if proto.Equal(c.chains[ch.GetName()], ch) {
				t.Errorf("patch puts chain %s, which is there", ch.GetName())
			}
			c.chains[ch.GetName()] = ch
		}
		for _, e := range in.GetElements() {
			s := c.sets[e.GetSet()]
			removed := e.GetRemove()
			for _, el := range s.unpack(t, in.GetFamily(), e.GetRemovePacked(), false) {
				removed = append(removed, el.GetKey())
			}
			for _, k := range removed {
				if s.elements[k] == nil {
					t.Errorf("patch removes %s %q, which is not there", e.GetSet(), k)
				}
				delete(s.elements, k)
			}
			s.add(t, append(e.GetAdd(), s.unpack(t, in.GetFamily(), e.GetAddPacked(), true)...))
		}
		for _, name := range in.GetDeleteChains() {
			if c.chains[name] == nil {
				t.Errorf("patch deletes chain %s, which is not there", name)
			}
			delete(c.chains, name)
		}
	}
	r.check(t)
}

// equals compares what patches have led to with the snapshot of the renderer.
func (r ruleset) equals(t testing.TB, of *Renderer, when string) {
	t.Helper()
	if diff := gocmp.Diff(load(t, of.Snapshot()).text(), r.text()); diff != "" || t.Failed() {
		t.Fatalf("%s: snapshot and patches differ (-snapshot +patches):\n%s", when, diff)
	}
}

// equalsRestarted is equals, also for a renderer that finds the fragment of this one and the same model.
func (r ruleset) equalsRestarted(t testing.TB, of *Renderer, all model.Changes, when string) {
	t.Helper()
	r.equals(t, of, when)
	again := mustNew(t, of.cfg)
	again.Restore(answered(t, of.Snapshot()))
	again.Load(all)
	r.equals(t, again, when+", restarted")
}

// reference finds what rules refer to.
var reference = regexp.MustCompile(`(?:@|jump |goto )([A-Za-z0-9_./-]+)`)

// picked finds the slots and the map that a rule picks from.
var picked = regexp.MustCompile(`numgen random mod ([0-9]+)(?: offset ([0-9]+))? map @([a-z-]+)`)

// counterName finds the named counter of a rule.
var counterName = regexp.MustCompile(`counter name "([^"]*)"`)

// check looks for references to what is not there, for chains that pick a slot
// that is empty, and for chains that remember nothing but are gone to.
func (r ruleset) check(t testing.TB) {
	t.Helper()
	for _, c := range r {
		for _, ch := range c.chains {
			for _, rule := range ch.GetRules() {
				if m := counterName.FindStringSubmatch(rule.GetText()); m != nil && !slices.ContainsFunc(c.counters, func(o *weftv1.Object) bool { return o.GetName() == m[1] }) {
					t.Errorf("chain %s refers to counter %s, which is not there", ch.GetName(), m[1])
				}
				for _, m := range reference.FindAllStringSubmatch(rule.GetText(), -1) {
					if c.chains[m[1]] == nil && c.sets[m[1]] == nil {
						t.Errorf("chain %s refers to %s, which is not there", ch.GetName(), m[1])
					}
				}
			}
		}
		for s, r := range map[set]role{sourceRanges: roleLimited, noEndpoints: roleNoEndpoint, noEndpointNodePorts: roleNoEndpoint} {
			for i := range hooks[r] {
				name := hooks[r][i].name
				if len(c.sets[declarations[s].name].elements) > 0 && len(c.chains[name].GetRules()) == 0 {
					t.Errorf("%s has elements, but chain %s, which looks them up, is not there or empty", declarations[s].name, name)
				}
			}
		}
		for s := range numSets {
			if c.sets[declarations[s].name] == nil {
				continue // nothing counts connections
			}
			for k, e := range c.sets[declarations[s].name].elements {
				target, ok := strings.CutPrefix(e.GetValue(), "goto ")
				if !ok {
					continue
				}
				if len(c.chains[target].GetRules()) == 0 {
					t.Errorf("%s %q goes to chain %s, which is not there or empty", declarations[s].name, k, target)
				}
				rules := c.chains[target].GetRules()
				if last := len(rules) - 1; last >= 0 {
					if next, ok := strings.CutPrefix(rules[last].GetText(), "goto "); ok {
						rules = append(rules[:last:last], c.chains[next].GetRules()...)
					}
				}
				for _, r := range rules {
					m := picked.FindStringSubmatch(r.GetText())
					if m == nil {
						continue
					}
					n, _ := strconv.Atoi(m[1])
					offset, _ := strconv.Atoi(m[2])
					for i := offset; i < offset+n; i++ {
						if c.sets[m[3]].elements[fmt.Sprintf("%s . %d", k, i)] == nil {
							t.Errorf("%s %q picks among %d, but slot %d is empty", declarations[s].name, k, n, i)
						}
					}
				}
			}
		}
		for name, s := range c.sets {
			isAffinity := strings.HasPrefix(strings.TrimPrefix(name, listPrefix[byLocal]), affinityPrefix)
			publishtest.Equal(t, fmt.Sprintf("map %s: an affinity map is one that is listed as such", name), isAffinity, s.packetsFill())
			publishtest.Equal(t, fmt.Sprintf("map %s has size %d", name, s.declaration.GetSize()), s.declaration.GetSize() > 0, isAffinity)
		}
	}
}

// slots counts the elements of maps of slots.
func (r ruleset) slots() (n int) {
	for _, c := range r {
		for s := range numSets {
			if declarations[s].slot {
				n += len(c.sets[declarations[s].name].elements)
			}
		}
	}
	return n
}

// packetsFill reports whether the map has that role.
func (s *setContent) packetsFill() bool {
	return s.declaration.GetRole() == weftv1.MapRole_MAP_ROLE_AFFINITY
}

// text writes the ruleset as nft(8) reads it, sorted.
func (r ruleset) text() string {
	var b strings.Builder
	for _, family := range slices.Sorted(maps.Keys(r)) {
		c := r[family]
		t := &weftv1.Table{Family: family, Name: Table, Objects: c.counters}
		for _, name := range slices.Sorted(maps.Keys(c.sets)) {
			s := c.sets[name]
			d := proto.CloneOf(s.declaration)
			d.Packed, d.Elements = nil, nil
			for _, k := range slices.Sorted(maps.Keys(s.elements)) {
				d.Elements = append(d.Elements, s.elements[k])
			}
			if s.packetsFill() {
				fmt.Fprintf(&b, "# packets fill %s\n", name)
			}
			if s.isMap {
				t.Maps = append(t.Maps, d)
			} else {
				t.Sets = append(t.Sets, d)
			}
		}
		// Chains that others jump to come before those.
		t.Chains = slices.SortedFunc(maps.Values(c.chains), func(x, y *weftv1.Chain) int {
			return cmp.Or(rank(x)-rank(y), strings.Compare(x.GetName(), y.GetName()))
		})
		table, err := convert.TableOf(t)
		if err != nil {
			panic(err)
		}
		b.WriteString(nftfile.Format([]nft.Table{table}))
	}
	return b.String()
}

func rank(c *weftv1.Chain) int {
	switch {
	case c.GetType() != "":
		return 3
	case c.GetName() == chainServices || c.GetName() == chainInputCheck || c.GetName() == chainServiceCheck:
		return 2
	case c.GetName() == chainShortcut || c.GetName() == chainNodePortShortcut || c.GetName() == chainMark || c.GetName() == chainReject || c.GetName() == chainDrop:
		return 0
	}
	return 1
}
