package desired_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// model is the merge as a plain function of all fragments, for comparing.
type model map[desired.Key]*modelFragment

type modelFragment struct {
	key      desired.Key
	priority int32
	tables   map[nft.TableID]*modelTable
}

type modelTable struct {
	dormant bool
	chains  map[string]desired.Chain
	sets    map[string]*modelSet
	objects map[merge.ObjectID]merge.ObjectDecl
}

type modelSet struct {
	decl      *nftset.Set
	conntrack bool
	affinity  bool
	elements  map[string]nftset.Element
}

func (m model) clone() model {
	c := model{}
	for key, f := range m {
		cf := &modelFragment{key: key, priority: f.priority, tables: map[nft.TableID]*modelTable{}}
		for id, t := range f.tables {
			ct := &modelTable{dormant: t.dormant, chains: maps.Clone(t.chains), sets: map[string]*modelSet{}, objects: maps.Clone(t.objects)}
			for name, s := range t.sets {
				ct.sets[name] = &modelSet{decl: s.decl, conntrack: s.conntrack, affinity: s.affinity, elements: maps.Clone(s.elements)}
			}
			cf.tables[id] = ct
		}
		c[key] = cf
	}
	return c
}

// apply returns the model after an update; ok is false where the update
// itself is wrong.
func (m model) apply(u *desired.Update) (model, bool) {
	next := m.clone()
	f, ok := next[u.Fragment]
	switch {
	case !u.Snapshot && !ok:
		return nil, false
	case u.Snapshot && len(u.Tables) == 0:
		delete(next, u.Fragment)
		return next, true
	case u.Snapshot:
		f = &modelFragment{key: u.Fragment, priority: u.Priority, tables: map[nft.TableID]*modelTable{}}
		next[u.Fragment] = f
	}
	for _, tu := range u.Tables {
		t, ok := f.tables[tu.Table]
		if !ok {
			t = &modelTable{chains: map[string]desired.Chain{}, sets: map[string]*modelSet{}, objects: map[merge.ObjectID]merge.ObjectDecl{}}
			f.tables[tu.Table] = t
		}
		if u.Snapshot {
			t.dormant = tu.Dormant
		}
		for _, id := range tu.DeleteObjects {
			delete(t.objects, id)
		}
		for _, name := range tu.DeleteFlowtables {
			delete(t.objects, merge.ObjectID{Kind: merge.KindFlowtable, Name: name})
		}
		for _, d := range merge.ObjectDecls(&tu) {
			t.objects[d.ID()] = d
		}
		for _, name := range tu.DeleteChains {
			delete(t.chains, name)
		}
		for _, name := range tu.DeleteSets {
			delete(t.sets, name)
		}
		for _, p := range tu.PutSets {
			s := &modelSet{decl: p.Decl, conntrack: p.Conntrack, affinity: p.Affinity, elements: map[string]nftset.Element{}}
			for _, e := range p.Elements {
				s.elements[packed.ID(p.Decl, &e)] = e
			}
			t.sets[p.Decl.Name] = s
		}
		for _, c := range tu.PutChains {
			t.chains[c.Decl.Name] = c
		}
		for _, eu := range tu.Elements {
			s, ok := t.sets[eu.Set]
			if !ok || s.decl.Key.Len != eu.Decl.Key.Len || !s.decl.Equal(eu.Decl) {
				return nil, false
			}
			for _, e := range eu.Remove {
				delete(s.elements, packed.ID(s.decl, &e))
			}
			for _, e := range eu.Add {
				s.elements[packed.ID(s.decl, &e)] = e
			}
		}
	}
	return next, true
}

func (m model) sorted() []*modelFragment {
	all := slices.Collect(maps.Values(m))
	slices.SortFunc(all, func(a, b *modelFragment) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.key.Publisher, b.key.Publisher), cmp.Compare(a.key.Name, b.key.Name))
	})
	return all
}

// mergedChain and mergedSet are what the kernel must hold of an object.
type mergedChain struct {
	decl  *nftobject.Chain
	rules []string
}

type mergedSet struct {
	decl     *nftset.Set
	elements map[string]nftset.Element
}

type mergedTable struct {
	dormant bool
	chains  map[string]*mergedChain
	sets    map[string]*mergedSet
	objects map[merge.ObjectID]merge.ObjectDecl
}

// merge returns the ruleset as fakeKernel.text writes it, or why the
// fragments do not go together.
func (m model) merge() (string, error) {
	tables := map[nft.TableID]*mergedTable{}
	refs := map[string]bool{}
	var errs []error
	for _, f := range m.sorted() {
		for id, ft := range f.tables {
			t, ok := tables[id]
			if !ok {
				t = &mergedTable{chains: map[string]*mergedChain{}, sets: map[string]*mergedSet{}, objects: map[merge.ObjectID]merge.ObjectDecl{}}
				tables[id] = t
			}
			errs = append(errs, t.addChains(f, id, ft, refs), t.addSets(id, ft, refs), t.addObjects(ft))
		}
	}
	for id, t := range tables {
		for item := range t.objects {
			delete(refs, itemRef(id, item))
		}
		for name, c := range t.chains {
			if c.decl.Base == nil {
				delete(refs, chainRef(id, name))
			}
		}
		for name, s := range t.sets {
			delete(refs, setRef(id, name, s.decl.Key.Len))
			delete(refs, setRef(id, name, 0))
		}
	}
	if len(refs) > 0 {
		errs = append(errs, fmt.Errorf("%q dangle", sortedKeys(refs)))
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	return mergedText(tables), nil
}

func chainRef(id nft.TableID, name string) string { return fmt.Sprintf("%s chain %s", id, name) }

func setRef(id nft.TableID, name string, keyLen uint32) string {
	return fmt.Sprintf("%s set %s of %d", id, name, keyLen)
}

func (t *mergedTable) addChains(f *modelFragment, id nft.TableID, ft *modelTable, refs map[string]bool) error {
	var err error
	for name, c := range ft.chains {
		mc, ok := t.chains[name]
		if !ok {
			mc = &mergedChain{decl: c.Decl}
			t.chains[name] = mc
		}
		if !merge.EqualChain(mc.decl, c.Decl) {
			err = fmt.Errorf("chain %s contradicts", name)
		}
		for _, r := range c.Rules {
			mc.rules = append(mc.rules, f.key.String()+" "+r.Text)
			for _, s := range r.Sets {
				refs[setRef(id, s, ruleKeyLen(r))] = true
			}
			for _, target := range r.Chains {
				refs[chainRef(id, target)] = true
			}
			for _, item := range ruleObjects(r) {
				refs[itemRef(id, item)] = true
			}
		}
	}
	return err
}

func (t *mergedTable) addSets(id nft.TableID, ft *modelTable, refs map[string]bool) error {
	var err error
	for name, s := range ft.sets {
		ms, ok := t.sets[name]
		if !ok {
			ms = &mergedSet{decl: s.decl, elements: map[string]nftset.Element{}}
			t.sets[name] = ms
		}
		if !ms.decl.Equal(s.decl) {
			err = fmt.Errorf("set %s contradicts", name)
		}
		for eid, e := range s.elements {
			if _, ok := ms.elements[eid]; !ok {
				ms.elements[eid] = e
			}
			if item := leadsToObject(s.decl, e.Data); item.Name != "" {
				refs[itemRef(id, item)] = true
			}
			if s.decl.Verdict {
				refs[chainRef(id, verdictChain(e.Data))] = true
			}
		}
	}
	return err
}

func mergedText(tables map[nft.TableID]*mergedTable) string {
	var b strings.Builder
	for _, id := range slices.SortedFunc(maps.Keys(tables), desired.CompareTables) {
		t := tables[id]
		fmt.Fprintf(&b, "table %s %t\n", id, t.dormant)
		for _, flowtables := range []bool{false, true} {
			for _, item := range merge.SortedObjects(t.objects) {
				if (item.Kind == merge.KindFlowtable) == flowtables {
					fmt.Fprintf(&b, " %s\n", itemText(t.objects[item]))
				}
			}
		}
		for _, name := range sortedKeys(t.chains) {
			fmt.Fprintf(&b, " chain %s\n", chainText(t.chains[name].decl))
			for _, r := range t.chains[name].rules {
				fmt.Fprintf(&b, "  %s\n", r)
			}
		}
		for _, name := range sortedKeys(t.sets) {
			fmt.Fprintf(&b, " set %s\n", setText(t.sets[name].decl))
			for _, eid := range sortedKeys(t.sets[name].elements) {
				e := t.sets[name].elements[eid]
				fmt.Fprintf(&b, "  %s\n", elementText(&e))
			}
		}
	}
	return b.String()
}

// Generators. The worlds are small, so that fragments meet.

var (
	drawKey   = rapid.SampledFrom([]desired.Key{{"a", "one"}, {"a", "two"}, {"b", "one"}, {"c", "x"}})
	drawTable = rapid.SampledFrom([]nft.TableID{ipWeft, ipDeny})
	drawAddr  = rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"})
	drawChain = rapid.SampledFrom([]string{"c0", "c1", "c2", "input"})
	drawSet   = rapid.SampledFrom([]string{"s0", "s1", "i0", "m0", "v0", "e0", "d0", "p0"})
)

// drawDecl draws a declaration of a set; odd ones are rare.
func drawDecl(t *rapid.T, name string) desired.Set {
	odd := rapid.IntRange(0, 9).Draw(t, "odd")
	var s desired.Set
	switch name[0] {
	case 's':
		s = addrSet(name)
		if odd == 0 {
			d := *s.Decl
			d.Key = typeAddr6
			s.Decl = &d
		}
	case 'i':
		s = intervalSet(name)
	case 'm':
		s = addrMap(name)
	case 'v':
		s = verdictMap(name)
	case 'p':
		s = objectMap(name)
	case 'd':
		s = affinityMap(name)
		s.Affinity = odd != 1
		return s
	default:
		s = endpointMap(name)
		s.Conntrack = odd != 1
	}
	if odd == 2 && name[0] != 'i' {
		s = withFlags(s, nftset.FlagTimeout)
	}
	return s
}

func drawElement(t *rapid.T, d *nftset.Set) nftset.Element {
	a := drawAddr.Draw(t, "addr")
	var e nftset.Element
	switch d.Name[0] {
	case 's':
		e = member(a)
		if d.Key.Len == 16 {
			e.Key = addr("2001:db8::" + a[len(a)-1:])
		}
		if d.Flags&nftset.FlagTimeout != 0 {
			e.Timeout = 1 << 40 * rapid.SampledFrom([]nftset.Element{{}, {Timeout: 1}, {Timeout: 2}}).Draw(t, "timeout").Timeout
		}
	case 'i':
		// Intervals that never overlap.
		e = member(a)
		e.KeyEnd = e.Key
	case 'm':
		e = mapped(a, drawAddr.Draw(t, "value"))
	case 'p':
		e = nftset.Element{Key: addr(a), Data: rapid.SampledFrom([]string{"n0", "n1"}).Draw(t, "counter")}
	case 'v':
		e = leads(dest(a, 6, 80), rapid.SampledFrom([]string{"c0", "c1", "c2"}).Draw(t, "target"))
	default:
		proto := rapid.SampledFrom([]byte{6, 17}).Draw(t, "proto")
		e = endpoint("10.96.0.1", proto, 53, rapid.Uint32Range(0, 2).Draw(t, "slot"), a+":5353")
	}
	e.Comment = rapid.SampledFrom([]string{"", "", "", "note"}).Draw(t, "comment")
	return e
}

func drawElements(t *rapid.T, d *nftset.Set, n int) []nftset.Element {
	if packed.Dynamic(d) {
		return nil // packets make them
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) nftset.Element { return drawElement(t, d) }), 0, n).Draw(t, "elements")
}

func drawRule(t *rapid.T) *compile.Rule {
	text := rapid.SampledFrom([]string{"accept", "drop", "counter"}).Draw(t, "verb")
	switch rapid.IntRange(0, 10).Draw(t, "refs") {
	case 8:
		counter := rapid.SampledFrom([]string{"n0", "n1"}).Draw(t, "counter")
		return rule("counter name "+counter, "#counter "+counter)
	case 9:
		return rule("limit name l0", "#limit l0")
	case 10:
		return rule("flow add @f0", "#flowtable f0")
	case 0:
		set := rapid.SampledFrom([]string{"s0", "s1"}).Draw(t, "set")
		return rule("ip saddr @"+set+" len=4 "+text, "@"+set)
	case 1:
		return rule("dest vmap @v0 "+text, "@v0")
	case 2:
		chain := rapid.SampledFrom([]string{"c1", "c2"}).Draw(t, "chain")
		return rule("jump "+chain, chain)
	case 3:
		return remember("d0", rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", ""}).Draw(t, "value"))
	default:
		return rule(text)
	}
}

func drawPutChain(t *rapid.T) desired.Chain {
	name := drawChain.Draw(t, "chain")
	rules := rapid.SliceOfN(rapid.Custom(drawRule), 0, 4).Draw(t, "rules")
	if name != "input" {
		c := regular(name, rules...)
		if rapid.IntRange(0, 15).Draw(t, "based") == 0 {
			c = base(name, 5, rules...)
		}
		return c
	}
	c := base(name, rapid.SampledFrom([]int32{0, 0, 0, 0, 10}).Draw(t, "priority"), rules...)
	return withPolicy(c, rapid.IntRange(0, 7).Draw(t, "policy") == 0)
}

func drawTableUpdate(t *rapid.T, snapshot bool) desired.TableUpdate {
	tu := desired.TableUpdate{Table: drawTable.Draw(t, "table")}
	seen := map[string]bool{}
	for range rapid.IntRange(0, 3).Draw(t, "chains") {
		c := drawPutChain(t)
		if !seen[c.Decl.Name] {
			seen[c.Decl.Name] = true
			tu.PutChains = append(tu.PutChains, c)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "sets") {
		s := drawDecl(t, drawSet.Draw(t, "set"))
		s.Elements = drawElements(t, s.Decl, 6)
		if !seen[s.Decl.Name] {
			seen[s.Decl.Name] = true
			tu.PutSets = append(tu.PutSets, s)
		}
	}
	drawItems(t, &tu)
	compileFor(&tu)
	if snapshot {
		tu.Dormant = rapid.IntRange(0, 5).Draw(t, "dormant") == 0
		return tu
	}
	for range rapid.IntRange(0, 1).Draw(t, "deletes") {
		tu.DeleteObjects = append(tu.DeleteObjects, named(drawItem.Draw(t, "delete object")))
		tu.DeleteFlowtables = append(tu.DeleteFlowtables, "f0")
		tu.DeleteChains = append(tu.DeleteChains, drawChain.Draw(t, "delete chain"))
		tu.DeleteSets = append(tu.DeleteSets, drawSet.Draw(t, "delete set"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "patches") {
		d := drawDecl(t, drawSet.Draw(t, "patched set")).Decl
		tu.Elements = append(tu.Elements, desired.Elements{Set: d.Name, Decl: d, Remove: drawElements(t, d, 2), Add: drawElements(t, d, 3)})
	}
	return tu
}

// compileFor drops the rules that would not compile against the sets in the
// same update.
func compileFor(tu *desired.TableUpdate) {
	for _, s := range tu.PutSets {
		for i := range tu.PutChains {
			c := &tu.PutChains[i]
			c.Rules = slices.DeleteFunc(c.Rules, func(r *compile.Rule) bool {
				n := ruleKeyLen(r)
				return slices.Contains(r.Sets, s.Decl.Name) && n != 0 && n != s.Decl.Key.Len
			})
		}
	}
}

func drawUpdate(t *rapid.T) *desired.Update {
	u := &desired.Update{Fragment: drawKey.Draw(t, "fragment"), Snapshot: rapid.IntRange(0, 3).Draw(t, "snapshot") == 0}
	if u.Snapshot {
		u.Priority = rapid.Int32Range(0, 1).Draw(t, "priority")
	}
	tables := rapid.IntRange(0, 2).Draw(t, "tables")
	for range tables {
		tu := drawTableUpdate(t, u.Snapshot)
		if !slices.ContainsFunc(u.Tables, func(other desired.TableUpdate) bool { return other.Table == tu.Table }) {
			u.Tables = append(u.Tables, tu)
		}
	}
	return u
}

func itemRef(id nft.TableID, item merge.ObjectID) string {
	return fmt.Sprintf("%s %s", id, describeObject(item))
}

func (t *mergedTable) addObjects(ft *modelTable) error {
	t.dormant = t.dormant || ft.dormant
	for id, d := range ft.objects {
		if have, ok := t.objects[id]; ok && !have.Equal(d) {
			return fmt.Errorf("%s contradicts", describeObject(id))
		}
		t.objects[id] = d
	}
	return nil
}
