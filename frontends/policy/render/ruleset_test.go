package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// ruleset is what a snapshot and patches amount to by family: the aggregator's semantics
// in its simplest form, and strict where a patch has no reason to be sloppy.
type ruleset map[string]*content

type content struct {
	chains   map[string]*weftv1.Chain
	counters map[string]*weftv1.Object
	sets     map[string]*setContent
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
		c := &content{chains: make(map[string]*weftv1.Chain), counters: make(map[string]*weftv1.Object), sets: make(map[string]*setContent)}
		out[in.GetFamily()] = c
		for _, ch := range in.GetChains() {
			if c.chains[ch.GetName()] != nil {
				t.Fatalf("chain %s twice", ch.GetName())
			}
			c.chains[ch.GetName()] = ch
		}
		for _, o := range in.GetObjects() {
			c.counters[o.GetName()] = o
		}
		for _, s := range in.GetSets() {
			c.declare(t, s, false)
		}
		for _, s := range in.GetMaps() {
			c.declare(t, s, true)
		}
		c.check(t)
	}
	return out
}

func (c *content) declare(t testing.TB, s *weftv1.Set, isMap bool) {
	t.Helper()
	if c.sets[s.GetName()] != nil {
		t.Fatalf("set %s is there already", s.GetName())
	}
	out := &setContent{declaration: s, isMap: isMap, elements: make(map[string]*weftv1.Element)}
	for _, e := range s.GetElements() {
		if out.elements[e.GetKey()] != nil {
			t.Fatalf("%s has %s twice", s.GetName(), e.GetKey())
		}
		out.elements[e.GetKey()] = e
	}
	c.sets[s.GetName()] = out
}

func (r ruleset) patch(t testing.TB, p *weftv1.Patch) {
	t.Helper()
	for _, in := range p.GetTables() {
		c := r[in.GetFamily()]
		for _, name := range in.GetDeleteChains() {
			if c.chains[name] == nil {
				t.Errorf("patch deletes chain %s, which is not there", name)
			}
			delete(c.chains, name)
		}
		for _, name := range in.GetDeleteSets() {
			if c.sets[name] == nil {
				t.Errorf("patch deletes set %s, which is not there", name)
			}
			delete(c.sets, name)
		}
		for _, o := range in.GetDeleteObjects() {
			if c.counters[o.GetName()] == nil {
				t.Errorf("patch deletes counter %s, which is not there", o.GetName())
			}
			delete(c.counters, o.GetName())
		}
		for _, ch := range in.GetPutChains() {
			was := c.chains[ch.GetName()]
			if proto.Equal(was, ch) {
				t.Errorf("patch puts chain %s, which is there", ch.GetName())
			}
			if was != nil && ch.GetHook() == "" {
				t.Errorf("patch changes chain %s", ch.GetName())
			}
			c.chains[ch.GetName()] = ch
		}
		for _, s := range in.GetPutSets() {
			if old := c.sets[s.GetName()]; old != nil && !c.inUse(s.GetName()) {
				// What an earlier process has left is replaced.
				delete(c.sets, s.GetName())
			}
			c.declare(t, s, false)
		}
		for _, s := range in.GetPutMaps() {
			c.declare(t, s, true)
		}
		for _, o := range in.GetPutObjects() {
			if c.counters[o.GetName()] != nil {
				t.Errorf("patch puts counter %s, which is there", o.GetName())
			}
			c.counters[o.GetName()] = o
		}
		for _, e := range in.GetElements() {
			c.patchElements(t, e)
		}
		c.check(t)
	}
}

// inUse reports whether a chain that packets get to names a set.
func (c *content) inUse(set string) bool {
	var uses func(chain string) bool
	uses = func(chain string) bool {
		for _, rule := range c.chains[chain].GetRules() {
			for _, m := range reference.FindAllStringSubmatch(rule.GetText(), -1) {
				if m[1] == set || c.chains[m[1]] != nil && uses(m[1]) {
					return true
				}
			}
		}
		return false
	}
	for _, m := range mapNames {
		for _, e := range c.sets[m].elements {
			if uses(strings.TrimPrefix(e.GetValue(), "goto ")) {
				return true
			}
		}
	}
	return false
}

func (c *content) patchElements(t testing.TB, e *weftv1.ElementPatch) {
	t.Helper()
	s := c.sets[e.GetSet()]
	if s == nil {
		t.Fatalf("patch changes elements of %s, which is not there", e.GetSet())
	}
	if len(e.GetAdd()) > manyMembers && !s.isMap && s.declaration.GetName() != setRecheck {
		t.Errorf("patch adds %d elements to %s", len(e.GetAdd()), e.GetSet())
	}
	for _, k := range e.GetRemove() {
		if s.elements[k] == nil {
			t.Errorf("patch removes %s %q, which is not there", e.GetSet(), k)
		}
		delete(s.elements, k)
	}
	for _, el := range e.GetAdd() {
		if proto.Equal(s.elements[el.GetKey()], el) {
			t.Errorf("patch adds %s %q again", e.GetSet(), el.GetKey())
		}
		s.elements[el.GetKey()] = el
	}
}

// reference finds what rules refer to.
var reference = regexp.MustCompile(`(?:@|jump |goto |counter name ")([A-Za-z0-9_./-]+)`)

// check looks for references to what is not there.
func (c *content) check(t testing.TB) {
	t.Helper()
	exists := func(name string) bool { return c.chains[name] != nil || c.sets[name] != nil || c.counters[name] != nil }
	for _, ch := range c.chains {
		for _, rule := range ch.GetRules() {
			for _, m := range reference.FindAllStringSubmatch(rule.GetText(), -1) {
				if !exists(m[1]) {
					t.Errorf("chain %s refers to %s, which is not there: %s", ch.GetName(), m[1], rule.GetText())
				}
			}
		}
	}
	for _, s := range c.sets {
		for _, e := range s.elements {
			if _, to, ok := strings.Cut(e.GetValue(), " "); ok && !exists(to) {
				t.Errorf("%s %s leads to %s, which is not there", s.declaration.GetName(), e.GetKey(), to)
			}
		}
	}
}

// String is the ruleset as nft reads it.
func (r ruleset) String() string {
	var b strings.Builder
	for _, family := range slices.Sorted(maps.Keys(r)) {
		c := r[family]
		fmt.Fprintf(&b, "table %s %s\ndelete table %s %s\ntable %s %s {\n", family, Table, family, Table, family, Table)
		for _, name := range slices.Sorted(maps.Keys(c.counters)) {
			fmt.Fprintf(&b, "  counter %s { comment %q\n }\n", name, c.counters[name].GetComment())
		}
		for _, name := range slices.Sorted(maps.Keys(c.sets)) {
			c.sets[name].write(&b)
		}
		for _, name := range slices.Sorted(maps.Keys(c.chains)) {
			writeChain(&b, c.chains[name])
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func (s *setContent) write(b *strings.Builder) {
	d := s.declaration
	kind := "set"
	if s.isMap {
		kind = "map"
	}
	fmt.Fprintf(b, "  %s %s {\n    type %s\n", kind, d.GetName(), d.GetType())
	if d.GetComment() != "" {
		fmt.Fprintf(b, "    comment %q\n", d.GetComment())
	}
	if len(d.GetFlags()) > 0 {
		fmt.Fprintf(b, "    flags %s\n", strings.Join(d.GetFlags(), ","))
	}
	if len(s.elements) > 0 {
		var all []string
		for _, k := range slices.Sorted(maps.Keys(s.elements)) {
			if s.isMap {
				k += " : " + s.elements[k].GetValue()
			}
			all = append(all, k)
		}
		fmt.Fprintf(b, "    elements = { %s }\n", strings.Join(all, ", "))
	}
	b.WriteString("  }\n")
}

func writeChain(b *strings.Builder, ch *weftv1.Chain) {
	fmt.Fprintf(b, "  chain %s {\n", ch.GetName())
	if ch.GetComment() != "" {
		fmt.Fprintf(b, "    comment %q\n", ch.GetComment())
	}
	if ch.GetHook() != "" {
		fmt.Fprintf(b, "    type %s hook %s priority %s; policy %s;\n", ch.GetType(), ch.GetHook(), ch.GetPriority(), ch.GetPolicy())
	}
	for _, rule := range ch.GetRules() {
		b.WriteString("    " + rule.GetText())
		if rule.GetComment() != "" {
			fmt.Fprintf(b, " comment %q", rule.GetComment())
		}
		b.WriteString("\n")
	}
	b.WriteString("  }\n")
}
