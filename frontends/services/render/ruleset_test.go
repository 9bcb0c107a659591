package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/nft"
)

// ruleset is what fragments and patches amount to: the aggregator's semantics
// in its simplest form, and strict where a patch has no reason to be sloppy.
type ruleset map[string]*tableContent

type tableContent struct {
	family string
	chains map[string]*weftv1.Chain
	sets   map[string]*setContent
	// affinity are the maps that packets fill.
	affinity []string
	// counters are the named ones.
	counters []string
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
		c := &tableContent{family: in.GetFamily(), chains: make(map[string]*weftv1.Chain), sets: make(map[string]*setContent)}
		for _, ch := range in.GetChains() {
			if c.chains[ch.GetName()] != nil {
				t.Fatalf("chain %s twice", ch.GetName())
			}
			c.chains[ch.GetName()] = ch
		}
		for i, l := range [][]*weftv1.Set{in.GetSets(), in.GetMaps()} {
			for _, s := range l {
				e := &setContent{declaration: s, isMap: i == 1, elements: make(map[string]*weftv1.Element)}
				for _, el := range append(s.GetElements(), e.unpack(t, in.GetFamily(), s.GetPacked(), true)...) {
					if e.elements[el.GetKey()] != nil {
						t.Fatalf("%s has %s twice", s.GetName(), el.GetKey())
					}
					e.elements[el.GetKey()] = el
				}
				if c.sets[s.GetName()] != nil {
					t.Fatalf("set or map %s twice", s.GetName())
				}
				c.sets[s.GetName()] = e
			}
		}
		c.affinity = affinityMaps(in.GetMaps())
		for _, o := range in.GetObjects() {
			c.counters = append(c.counters, o.GetName())
		}
		out[in.GetFamily()] = c
	}
	return out
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

// affinityMaps returns the names of the maps that packets fill.
func affinityMaps(all []*weftv1.Set) []string {
	var out []string
	for _, m := range all {
		if m.GetRole() == weftv1.MapRole_MAP_ROLE_AFFINITY {
			out = append(out, m.GetName())
		}
	}
	return out
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
			c.affinity = slices.DeleteFunc(c.affinity, func(s string) bool { return s == name })
		}
		for i, l := range [][]*weftv1.Set{in.GetPutSets(), in.GetPutMaps()} {
			for _, m := range l {
				if c.sets[m.GetName()] != nil {
					t.Errorf("patch declares %s again", m.GetName())
				}
				c.sets[m.GetName()] = &setContent{declaration: m, isMap: i == 1, elements: make(map[string]*weftv1.Element)}
				for _, e := range append(m.GetElements(), c.sets[m.GetName()].unpack(t, in.GetFamily(), m.GetPacked(), true)...) {
					c.sets[m.GetName()].elements[e.GetKey()] = e
				}
			}
		}
		c.affinity = append(c.affinity, affinityMaps(in.GetPutMaps())...)
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
			for _, el := range append(e.GetAdd(), s.unpack(t, in.GetFamily(), e.GetAddPacked(), true)...) {
				if was := s.elements[el.GetKey()]; was != nil && was.GetValue() == el.GetValue() && was.GetComment() == el.GetComment() {
					t.Errorf("patch adds %s %q again", e.GetSet(), el.GetKey())
				}
				s.elements[el.GetKey()] = el
			}
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
	if diff := cmp.Diff(load(t, of.Snapshot()).text(), r.text()); diff != "" || t.Failed() {
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
				if m := counterName.FindStringSubmatch(rule.GetText()); m != nil && !slices.Contains(c.counters, m[1]) {
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
			if isAffinity != slices.Contains(c.affinity, name) {
				t.Errorf("map %s: an affinity map is one that is listed as such", name)
			}
			if s.declaration.GetSize() > 0 != isAffinity {
				t.Errorf("map %s has size %d", name, s.declaration.GetSize())
			}
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

// text writes the ruleset as nft(8) reads it, sorted.
func (r ruleset) text() string {
	var b strings.Builder
	for _, fam := range slices.Sorted(maps.Keys(r)) {
		c := r[fam]
		fmt.Fprintf(&b, "table %s %s {\n", fam, Table)
		for _, name := range c.counters {
			fmt.Fprintf(&b, "\tcounter %s {\n\t}\n", name)
		}
		for _, name := range slices.Sorted(maps.Keys(c.sets)) {
			c.sets[name].text(&b)
		}
		// Chains that others jump to come before those.
		names := slices.Sorted(maps.Keys(c.chains))
		fmt.Fprintf(&b, "\t# packets fill: %s\n", strings.Join(slices.Sorted(slices.Values(c.affinity)), " "))
		slices.SortStableFunc(names, func(x, y string) int { return rank(c.chains[x]) - rank(c.chains[y]) })
		for _, name := range names {
			chainText(&b, c.chains[name])
		}
		b.WriteString("}\n")
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

func (s *setContent) text(b *strings.Builder) {
	d := s.declaration
	kind := "set"
	if s.isMap {
		kind = "map"
	}
	fmt.Fprintf(b, "\t%s %s {\n\t\ttypeof %s\n", kind, d.GetName(), d.GetTypeof())
	if len(d.GetFlags()) > 0 {
		fmt.Fprintf(b, "\t\tflags %s\n", strings.Join(d.GetFlags(), ", "))
	}
	if d.GetSize() > 0 {
		fmt.Fprintf(b, "\t\tsize %d\n", d.GetSize())
	}
	for _, statement := range d.GetStateful() {
		fmt.Fprintf(b, "\t\t%s\n", statement)
	}
	if len(s.elements) > 0 {
		b.WriteString("\t\telements = {\n")
		for _, k := range slices.Sorted(maps.Keys(s.elements)) {
			e := s.elements[k]
			b.WriteString("\t\t\t" + e.GetKey())
			if e.GetComment() != "" {
				fmt.Fprintf(b, " comment %q", e.GetComment())
			}
			if e.GetValue() != "" {
				b.WriteString(" : " + e.GetValue())
			}
			b.WriteString(",\n")
		}
		b.WriteString("\t\t}\n")
	}
	b.WriteString("\t}\n")
}

func chainText(b *strings.Builder, c *weftv1.Chain) {
	fmt.Fprintf(b, "\tchain %s {\n", c.GetName())
	if c.GetType() != "" {
		fmt.Fprintf(b, "\t\ttype %s hook %s priority %s; policy %s;\n", c.GetType(), c.GetHook(), c.GetPriority(), c.GetPolicy())
	}
	for _, r := range c.GetRules() {
		fmt.Fprintf(b, "\t\t%s\n", r.GetText())
	}
	b.WriteString("\t}\n")
}
