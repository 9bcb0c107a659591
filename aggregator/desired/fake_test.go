package desired_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// fakeKernel is a model of nf_tables: it executes a batch as a whole or not at all. Unlike
// nf_tables it refuses to add an element twice.
type fakeKernel struct {
	tables map[nft.TableID]*fakeTable
	handle uint64
	now    time.Duration
}

type fakeTable struct {
	dormant bool
	chains  map[string]*fakeChain
	sets    map[string]*fakeSet
	objects map[merge.ObjectID]fakeItem
}

// fakeItem is an object or flowtable. state is the number of items made before, so that each item
// differs.
type fakeItem struct {
	decl  merge.ObjectDecl
	state uint64
}

func newFakeTable() *fakeTable {
	return &fakeTable{chains: map[string]*fakeChain{}, sets: map[string]*fakeSet{}, objects: map[merge.ObjectID]fakeItem{}}
}

type fakeChain struct {
	decl  *nftobject.Chain
	rules []fakeRule
}

type fakeRule struct {
	handle *kernel.Handle
	n      uint64
	rule   *compile.Rule
	owner  string
}

type fakeSet struct {
	decl     *nftset.Set
	elements map[string]nftset.Element
	// deadlines has those of elements with a timeout.
	deadlines map[string]time.Duration
}

func newFakeKernel() *fakeKernel { return &fakeKernel{tables: map[nft.TableID]*fakeTable{}} }

func (k *fakeKernel) clone() *fakeKernel {
	c := &fakeKernel{tables: map[nft.TableID]*fakeTable{}, handle: k.handle, now: k.now}
	for id, t := range k.tables {
		ct := newFakeTable()
		ct.dormant, ct.objects = t.dormant, maps.Clone(t.objects)
		for name, ch := range t.chains {
			ct.chains[name] = &fakeChain{decl: ch.decl, rules: slices.Clone(ch.rules)}
		}
		for name, s := range t.sets {
			cs := &fakeSet{decl: s.decl, elements: make(map[string]nftset.Element, len(s.elements)), deadlines: maps.Clone(s.deadlines)}
			for id, e := range s.elements {
				cs.elements[id] = e
			}
			ct.sets[name] = cs
		}
		c.tables[id] = ct
	}
	return c
}

// commit executes a batch.
func (k *fakeKernel) commit(ops []kernel.Op) error {
	next := k.clone()
	for i, op := range ops {
		if err := next.exec(op); err != nil {
			return fmt.Errorf("op %d %T: %w", i, op, err)
		}
	}
	for _, t := range next.tables {
		for _, c := range t.chains {
			for _, r := range c.rules {
				r.handle.N = r.n
			}
		}
	}
	*k = *next
	return nil
}

func (k *fakeKernel) table(id nft.TableID) (*fakeTable, error) {
	if t, ok := k.tables[id]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("table %s: ENOENT", id)
}

func (k *fakeKernel) exec(op kernel.Op) error {
	switch op := op.(type) {
	case kernel.AddTable:
		if _, ok := k.tables[op.Table]; !ok {
			k.tables[op.Table] = newFakeTable()
		}
		k.tables[op.Table].dormant = op.Dormant
		return nil
	case kernel.DeleteTable:
		_, err := k.table(op.Table)
		delete(k.tables, op.Table)
		return err
	case kernel.AddChain:
		return k.on(op.Table, func(t *fakeTable) error { return t.addChain(op) })
	case kernel.DeleteChain:
		return k.on(op.Table, func(t *fakeTable) error { return t.deleteChain(op.Name) })
	case kernel.AddRule:
		return k.on(op.Table, func(t *fakeTable) error { return t.addRule(k, op) })
	case kernel.DeleteRule:
		return k.on(op.Table, func(t *fakeTable) error { return t.deleteRule(op) })
	case kernel.AddSet:
		return k.on(op.Table, func(t *fakeTable) error {
			if _, ok := t.sets[op.Set.Name]; ok {
				return fmt.Errorf("set %s: EEXIST", op.Set.Name)
			}
			t.sets[op.Set.Name] = &fakeSet{decl: op.Set, elements: map[string]nftset.Element{}, deadlines: map[string]time.Duration{}}
			return nil
		})
	case kernel.DeleteSet:
		return k.on(op.Table, func(t *fakeTable) error { return t.deleteSet(op.Name) })
	case kernel.FlushSet:
		return k.on(op.Table, func(t *fakeTable) error {
			s, ok := t.sets[op.Name]
			if !ok {
				return fmt.Errorf("set %s: ENOENT", op.Name)
			}
			clear(s.elements)
			clear(s.deadlines)
			return nil
		})
	case kernel.AddElements:
		return k.on(op.Table, func(t *fakeTable) error { return t.addElements(k.now, op) })
	case kernel.DeleteElements:
		return k.on(op.Table, func(t *fakeTable) error { return t.deleteElements(op) })
	case kernel.AddObject:
		return k.on(op.Table, func(t *fakeTable) error { return t.addItem(k, merge.ObjectDecl{Object: op.Object}) })
	case kernel.DeleteObject:
		return k.on(op.Table, func(t *fakeTable) error { return t.deleteObject(op.Ref) })
	case kernel.AddFlowtable:
		return k.on(op.Table, func(t *fakeTable) error { return t.addItem(k, merge.ObjectDecl{Flowtable: op.Flowtable}) })
	case kernel.DeleteFlowtable:
		return k.on(op.Table, func(t *fakeTable) error {
			return t.deleteObject(merge.ObjectID{Kind: merge.KindFlowtable, Name: op.Name})
		})
	default:
		return fmt.Errorf("unknown op %T", op)
	}
}

func (k *fakeKernel) on(id nft.TableID, f func(*fakeTable) error) error {
	t, err := k.table(id)
	if err != nil {
		return err
	}
	return f(t)
}

func (t *fakeTable) addItem(k *fakeKernel, d merge.ObjectDecl) error {
	if _, ok := t.objects[d.ID()]; ok {
		return fmt.Errorf("%s: EEXIST", describeObject(d.ID()))
	}
	k.handle++
	t.objects[d.ID()] = fakeItem{d, k.handle}
	return nil
}

func (t *fakeTable) deleteObject(id merge.ObjectID) error {
	if _, ok := t.objects[id]; !ok {
		return fmt.Errorf("%s: ENOENT", describeObject(id))
	}
	for cn, c := range t.chains {
		for _, r := range c.rules {
			if slices.Contains(ruleObjects(r.rule), id) {
				return fmt.Errorf("%s is used in chain %s: EBUSY", describeObject(id), cn)
			}
		}
	}
	for sn, s := range t.sets {
		for _, e := range s.elements {
			if leadsToObject(s.decl, e.Data) == id {
				return fmt.Errorf("%s is in map %s: EBUSY", describeObject(id), sn)
			}
		}
	}
	delete(t.objects, id)
	return nil
}

// dumpItems gives counters what they have counted.
func (t *fakeTable) dumpItems(d *kernel.Table) {
	d.Dormant = t.dormant
	for _, id := range merge.SortedObjects(t.objects) {
		it := t.objects[id]
		if it.decl.Flowtable != nil {
			d.Flowtables = append(d.Flowtables, it.decl.Flowtable)
			continue
		}
		o := *it.decl.Object
		switch o.Kind {
		case nft.ObjectCounter:
			o.Text = fmt.Sprintf("packets %d bytes %d", it.state, 100*it.state)
		case nft.ObjectQuota:
			o.Text = fmt.Sprintf("%s used %d bytes", merge.Definition(&o), it.state)
		}
		d.Objects = append(d.Objects, &o)
	}
}

func (t *fakeTable) addChain(op kernel.AddChain) error {
	c, ok := t.chains[op.Chain.Name]
	if !ok {
		t.chains[op.Chain.Name] = &fakeChain{decl: op.Chain}
		return nil
	}
	if !merge.Updatable(c.decl, op.Chain) {
		return fmt.Errorf("chain %s: EEXIST", op.Chain.Name)
	}
	c.decl = op.Chain
	return nil
}

func (t *fakeTable) deleteChain(name string) error {
	c, ok := t.chains[name]
	switch {
	case !ok:
		return fmt.Errorf("chain %s: ENOENT", name)
	case len(c.rules) > 0:
		return fmt.Errorf("chain %s has rules: EBUSY", name)
	}
	for _, other := range t.chains {
		for _, r := range other.rules {
			if slices.Contains(r.rule.Chains, name) {
				return fmt.Errorf("chain %s is jumped to: EBUSY", name)
			}
		}
	}
	for sn, s := range t.sets {
		for _, e := range s.elements {
			if s.decl.Verdict && verdictChain(e.Data) == name {
				return fmt.Errorf("chain %s is in map %s: EBUSY", name, sn)
			}
		}
	}
	delete(t.chains, name)
	return nil
}

func (t *fakeTable) target(name string) error {
	c, ok := t.chains[name]
	switch {
	case !ok:
		return fmt.Errorf("target chain %s: ENOENT", name)
	case c.decl.Base != nil:
		return fmt.Errorf("target chain %s: EOPNOTSUPP", name)
	default:
		return nil
	}
}

func (t *fakeTable) addRule(k *fakeKernel, op kernel.AddRule) error {
	c, ok := t.chains[op.Chain]
	if !ok {
		return fmt.Errorf("chain %s: ENOENT", op.Chain)
	}
	for _, name := range op.Rule.Sets {
		s, ok := t.sets[name]
		if !ok {
			return fmt.Errorf("rule's set %s: ENOENT", name)
		}
		if want := ruleKeyLen(op.Rule); want != 0 && want != s.decl.Key.Len {
			return fmt.Errorf("rule's set %s: EINVAL: rule loads %d bytes, key has %d", name, want, s.decl.Key.Len)
		}
	}
	for _, id := range ruleObjects(op.Rule) {
		if _, ok := t.objects[id]; !ok {
			return fmt.Errorf("rule's %s: ENOENT", describeObject(id))
		}
	}
	for _, name := range op.Rule.Chains {
		if err := t.target(name); err != nil {
			return err
		}
	}
	at := 0
	if op.After != nil {
		at = slices.IndexFunc(c.rules, func(r fakeRule) bool {
			return r.handle == op.After || op.After.N != 0 && r.n == op.After.N
		}) + 1
		if at == 0 {
			return fmt.Errorf("chain %s: position: ENOENT", op.Chain)
		}
	}
	if op.Handle == nil {
		return fmt.Errorf("chain %s: rule without handle", op.Chain)
	}
	k.handle++
	c.rules = slices.Insert(c.rules, at, fakeRule{handle: op.Handle, n: k.handle, rule: op.Rule, owner: op.Owner})
	return nil
}

func (t *fakeTable) deleteRule(op kernel.DeleteRule) error {
	c, ok := t.chains[op.Chain]
	if !ok {
		return fmt.Errorf("chain %s: ENOENT", op.Chain)
	}
	i := slices.IndexFunc(c.rules, func(r fakeRule) bool { return op.Handle != nil && r.n == op.Handle.N })
	if i < 0 {
		return fmt.Errorf("chain %s rule %v: ENOENT", op.Chain, op.Handle)
	}
	c.rules = slices.Delete(c.rules, i, i+1)
	return nil
}

func (t *fakeTable) deleteSet(name string) error {
	if _, ok := t.sets[name]; !ok {
		return fmt.Errorf("set %s: ENOENT", name)
	}
	for cn, c := range t.chains {
		for _, r := range c.rules {
			if slices.Contains(r.rule.Sets, name) {
				return fmt.Errorf("set %s is used in chain %s: EBUSY", name, cn)
			}
		}
	}
	delete(t.sets, name)
	return nil
}

func (t *fakeTable) addElements(now time.Duration, op kernel.AddElements) error {
	s, ok := t.sets[op.Set.Name]
	if !ok || !s.decl.Equal(op.Set) {
		return fmt.Errorf("set %s: ENOENT or other declaration", op.Set.Name)
	}
	for _, e := range op.Elements {
		id := packed.ID(s.decl, &e)
		if had, ok := s.elements[id]; ok && (!op.Renew || had.Data != e.Data) {
			return fmt.Errorf("set %s element %q: EEXIST", op.Set.Name, e.Key)
		}
		if id := leadsToObject(s.decl, e.Data); id.Name != "" && t.objects[id] == (fakeItem{}) {
			return fmt.Errorf("element's %s: ENOENT", describeObject(id))
		}
		if name := verdictChain(e.Data); s.decl.Verdict && name != "" {
			if err := t.target(name); err != nil {
				return err
			}
		}
		s.elements[id] = e
		delete(s.deadlines, id)
		if merge.Timed(s.decl, &e) {
			s.deadlines[id] = now + cmp.Or(e.Expires(), packed.Timeout(s.decl, &e))
		}
	}
	return nil
}

// advance moves the clock, and forgets the elements that expire.
func (k *fakeKernel) advance(now time.Duration) {
	k.now = now
	for _, t := range k.tables {
		for _, s := range t.sets {
			for id, at := range s.deadlines {
				if at <= now {
					delete(s.elements, id)
					delete(s.deadlines, id)
				}
			}
		}
	}
}

func (t *fakeTable) deleteElements(op kernel.DeleteElements) error {
	s, ok := t.sets[op.Set.Name]
	if !ok {
		return fmt.Errorf("set %s: ENOENT", op.Set.Name)
	}
	for _, e := range op.Elements {
		id := packed.ID(s.decl, &e)
		if _, ok := s.elements[id]; !ok && s.decl.Flags&nftset.FlagTimeout == 0 {
			return fmt.Errorf("set %s element %q: ENOENT", op.Set.Name, e.Key)
		}
		delete(s.elements, id)
		delete(s.deadlines, id)
	}
	return nil
}

// ruleKeyLen is the length of the key that a test rule loads; 0 is unknown.
func ruleKeyLen(r *compile.Rule) uint32 {
	var n uint32
	if i := strings.Index(r.Text, "len="); i >= 0 {
		_, _ = fmt.Sscanf(r.Text[i:], "len=%d", &n)
	}
	return n
}

// dump has no fields of concatenations, and of the rules only what they write.
func (k *fakeKernel) dump() []kernel.Table {
	var tables []kernel.Table
	for id, t := range k.tables {
		d := kernel.Table{ID: id}
		t.dumpItems(&d)
		for _, name := range sortedKeys(t.chains) {
			c := t.chains[name]
			dc := kernel.Chain{Decl: c.decl}
			for _, r := range c.rules {
				info := userdata.RuleInfo{Comment: r.rule.Comment, Fingerprint: r.rule.Fingerprint, Owner: r.owner, Ours: r.owner != ""}
				dc.Rules = append(dc.Rules, kernel.Rule{Handle: &kernel.Handle{N: r.n}, Info: info, Writes: r.rule.Writes})
			}
			d.Chains = append(d.Chains, dc)
		}
		for _, name := range sortedKeys(t.sets) {
			s := t.sets[name]
			decl := *s.decl
			decl.Key.Fields, decl.Data.Fields = nil, nil
			ds := kernel.Set{Decl: &decl}
			for _, id := range sortedKeys(s.elements) {
				e := s.elements[id]
				if at, ok := s.deadlines[id]; ok {
					e.State = nftset.NewState(at-k.now, e.Stateful())
				}
				ds.Elements = append(ds.Elements, e)
			}
			d.Sets = append(d.Sets, ds)
		}
		tables = append(tables, d)
	}
	slices.SortFunc(tables, func(a, b kernel.Table) int { return desired.CompareTables(a.ID, b.ID) })
	return tables
}

// text is the ruleset, one object per line, for comparing.
func (k *fakeKernel) text() string {
	var b strings.Builder
	for _, d := range k.dump() {
		fmt.Fprintf(&b, "table %s %t\n", d.ID, d.Dormant)
		for _, part := range adopt.DumpedParts(&d) {
			if decl, ok := part.Decl.(merge.ObjectDecl); ok {
				fmt.Fprintf(&b, " %s\n", itemText(decl))
			}
		}
		for _, c := range d.Chains {
			fmt.Fprintf(&b, " chain %s\n", chainText(c.Decl))
			for _, r := range k.tables[d.ID].chains[c.Decl.Name].rules {
				fmt.Fprintf(&b, "  %s %s\n", r.owner, r.rule.Text)
			}
		}
		for _, s := range d.Sets {
			fmt.Fprintf(&b, " set %s\n", setText(s.Decl))
			for _, e := range s.Elements {
				fmt.Fprintf(&b, "  %s\n", elementText(&e))
			}
		}
	}
	return b.String()
}

// describeObject names an object as nft writes it, such as "ct helper ftp".
func describeObject(id merge.ObjectID) string { return string(id.Kind) + " " + id.Name }

func itemText(d merge.ObjectDecl) string { return describeObject(d.ID()) + " " + d.String() }

func chainText(c *nftobject.Chain) string {
	if c.Base == nil {
		return fmt.Sprintf("%s %q", c.Name, c.Comment)
	}
	return fmt.Sprintf("%s %q %v", c.Name, c.Comment, *c.Base)
}

func setText(s *nftset.Set) string {
	return fmt.Sprintf("%s key %d data %d flags %#x timeout %s", s.Name, s.Key.Len, s.Data.Len, s.Flags, s.Timeout)
}

func elementText(e *nftset.Element) string {
	return fmt.Sprintf("%q-%q: %q %s %q", e.Key, e.KeyEnd, e.Data, e.Timeout, e.Comment)
}
