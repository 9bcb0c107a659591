package aggregator

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/json"
)

// addFragment adds a part of a snapshot. The first part decides the fragment's
// head (priority and lifetime).
func (a *admission) addFragment(f *weftv1.Fragment, first bool) {
	if !a.count(&a.bytes, proto.Size(f), MaxBytes, "bytes") || !a.bulk(f) {
		return
	}
	if first {
		a.priority, a.lifetime = f.GetPriority(), lifetime(f.GetLifetime())
		if _, ok := weftv1.Lifetime_name[int32(f.GetLifetime())]; !ok {
			a.bad.add(weftv1.Reason_REASON_INVALID, "", fmt.Sprintf("lifetime %d is unknown", f.GetLifetime()))
		}
	}
	if first && a.lifetime == weftv1.Lifetime_LIFETIME_DURABLE && !a.stateful {
		a.bad.add(weftv1.Reason_REASON_INVALID, "", "lifetime durable needs a state directory: start the aggregator with --state-dir")
	}
	if f.GetNft() != "" {
		if len(f.GetTables()) > 0 {
			a.bad.add(weftv1.Reason_REASON_INVALID, "", "the fragment has both tables and nft: give one of them")
			return
		}
		a.addFile(f.GetNft())
		return
	}
	for _, t := range f.GetTables() {
		a.addTable(t)
	}
}

// lifetime returns what an unspecified lifetime means.
func lifetime(l weftv1.Lifetime) weftv1.Lifetime {
	if l == weftv1.Lifetime_LIFETIME_UNSPECIFIED {
		return weftv1.Lifetime_LIFETIME_STICKY
	}
	return l
}

// addTable adds a table of a snapshot, or a further part of one.
func (a *admission) addTable(m *weftv1.Table) {
	id, ok := a.identify(m.GetFamily(), m.GetName())
	if !ok {
		return
	}
	t := a.table(id)
	if len(a.tables) == MaxTables+1 {
		a.bad.add(weftv1.Reason_REASON_LIMIT, "", fmt.Sprintf("the update has more than %d tables", MaxTables))
		return
	}
	if m.GetComment() != "" {
		if err := compile.CheckComment(m.GetComment()); err != nil {
			a.bad.add(weftv1.Reason_REASON_INVALID, "table "+id.String(), err.Error())
		}
		t.comment = m.GetComment()
	}
	a.addFlags(t, m.GetFlags())
	a.addObjects(t, m.GetObjects(), m.GetFlowtables())
	for _, n := range m.GetConntrackMaps() {
		addName(&t.conntrack, n)
	}
	for _, n := range m.GetAffinityMaps() {
		addName(&t.affinity, n)
	}
	for _, s := range m.GetSets() {
		a.addSet(t, s, false)
	}
	for _, s := range m.GetMaps() {
		a.addSet(t, s, true)
	}
	for _, c := range m.GetChains() {
		a.addChain(t, chainOf(c))
	}
}

// addPatch adds a patch.
func (a *admission) addPatch(p *weftv1.Patch) {
	if !a.count(&a.bytes, proto.Size(p), MaxBytes, "bytes") {
		return
	}
	if len(p.GetTables()) > MaxTables {
		a.bad.add(weftv1.Reason_REASON_LIMIT, "", fmt.Sprintf("the update has more than %d tables", MaxTables))
		return
	}
	for _, m := range p.GetTables() {
		id, ok := a.identify(m.GetFamily(), m.GetName())
		if !ok {
			continue
		}
		t := a.table(id)
		for n := range a.own.conntrackMaps(id) {
			addName(&t.conntrack, n)
		}
		for n := range a.own.affinityMaps(id) {
			addName(&t.affinity, n)
		}
		for _, n := range m.GetConntrackMaps() {
			addName(&t.conntrack, n)
		}
		for _, n := range m.GetAffinityMaps() {
			addName(&t.affinity, n)
		}
		a.deleteObjects(t, m)
		a.addObjects(t, m.GetPutObjects(), m.GetPutFlowtables())
		for _, s := range m.GetPutSets() {
			a.addSet(t, s, false)
		}
		for _, s := range m.GetPutMaps() {
			a.addSet(t, s, true)
		}
		for _, c := range m.GetPutChains() {
			a.addChain(t, chainOf(c))
		}
		t.deleteChains = append(t.deleteChains, m.GetDeleteChains()...)
		t.deleteSets = append(t.deleteSets, m.GetDeleteSets()...)
		for _, e := range m.GetElements() {
			a.addElements(t, e)
		}
	}
}

// addName adds a name to a set of names, which is made when it is needed.
func addName(names *map[string]bool, name string) {
	if *names == nil {
		*names = make(map[string]bool)
	}
	(*names)[name] = true
}

// addElements adds a change of the elements of a set that the fragment has, or
// that the same patch declares.
func (a *admission) addElements(t *tableAdmission, e *weftv1.ElementPatch) {
	if !a.count(&a.elements, len(e.GetAdd())+len(e.GetRemove()), MaxElements, "elements") {
		return
	}
	var decl *compile.Set
	if s := t.setByName[e.GetSet()]; s != nil {
		decl = s.decl
		if decl == nil {
			return
		}
	} else if decl, _ = a.own.set(t.id, e.GetSet()); decl == nil || slices.Contains(t.deleteSets, e.GetSet()) {
		a.bad.add(weftv1.Reason_REASON_REFERENCE, fmt.Sprintf("table %s set %s", t.id, clip(e.GetSet())),
			"the fragment has no such set or map: declare it in put_sets or put_maps")
		return
	}
	x := &elementsAdmission{set: e.GetSet(), decl: decl}
	if len(e.GetRemove()) > 0 {
		x.remove = []*chunk{a.packKeys(t.id, decl, e.GetRemove())}
	}
	if len(e.GetAdd()) > 0 {
		x.add = []*chunk{a.packAdd(t.id, decl, e.GetAdd())}
	}
	t.patches = append(t.patches, x)
}

// addSet adds a set or map: its declaration where it comes first, elements
// afterwards.
func (a *admission) addSet(t *tableAdmission, m *weftv1.Set, isMap bool) {
	if !a.count(&a.elements, len(m.GetElements()), MaxElements, "elements") {
		return
	}
	s := t.setByName[m.GetName()]
	if s == nil {
		s = a.declare(t, setOf(m), isMap)
	} else if m.GetType() != "" || m.GetTypeof() != "" {
		a.bad.add(weftv1.Reason_REASON_INVALID, fmt.Sprintf("table %s %s %s", t.id, kind(isMap), clip(m.GetName())), "it is declared twice")
		return
	}
	if s == nil || s.decl == nil || len(m.GetElements()) == 0 {
		return
	}
	s.chunks = append(s.chunks, a.packAdd(t.id, s.decl, m.GetElements()))
}

// declare compiles a declaration. It returns nil where there are too many.
func (a *admission) declare(t *tableAdmission, d nft.Set, isMap bool) *setAdmission {
	if !a.count(&a.sets, 1, MaxSets, "sets and maps") {
		return nil
	}
	s := &setAdmission{source: d}
	s.source.Elements = nil
	object := fmt.Sprintf("table %s %s %s", t.id, kind(isMap), clip(d.Name))
	if t.setByName == nil {
		t.setByName = make(map[string]*setAdmission)
	}
	t.setByName[d.Name] = s
	t.sets = append(t.sets, s)
	if err := checkName(d.Name); err != nil {
		a.bad.add(weftv1.Reason_REASON_INVALID, object, err.Error())
		return s
	}
	var err error
	if isMap {
		m := nft.Map(d)
		s.decl, err = compile.CompileMap(t.id.Family, &m)
	} else {
		s.decl, err = compile.CompileSet(t.id.Family, &d)
	}
	if err != nil {
		a.bad.compile(object, err)
		s.decl = nil
	}
	return s
}

// addChain adds a chain with its rules, which are compiled later.
func (a *admission) addChain(t *tableAdmission, c nft.Chain) {
	if !a.count(&a.chains, 1, MaxChains, "chains") || !a.count(&a.rules, len(c.Rules), MaxRules, "rules") {
		return
	}
	object := fmt.Sprintf("table %s chain %s", t.id, clip(c.Name))
	if err := checkName(c.Name); err != nil {
		a.bad.add(weftv1.Reason_REASON_INVALID, object, err.Error())
		return
	}
	if t.chainName[c.Name] {
		a.bad.add(weftv1.Reason_REASON_INVALID, object, "it is declared twice: give all its rules at once")
		return
	}
	addName(&t.chainName, c.Name)
	decl, err := compile.CompileChain(t.id.Family, &c)
	if err != nil {
		a.bad.compile(object, err)
		// The rules are judged all the same: all violations in one go.
		decl = &compile.Chain{Name: c.Name}
	}
	rules := c.Rules
	c.Rules = nil
	t.chains = append(t.chains, &chainAdmission{source: c, decl: decl, rules: rules})
}

// addFile adds a whole .nft file.
func (a *admission) addFile(text string) {
	tables, err := json.ParseFile(a.key.Name, text)
	if err != nil {
		a.bad.file(err)
		return
	}
	a.file = text
	for i := range tables {
		m := &tables[i]
		id, ok := a.identify(m.Family.String(), m.Name)
		if !ok {
			continue
		}
		t := a.table(id)
		if err := compile.CheckComment(m.Comment); err != nil {
			a.bad.add(weftv1.Reason_REASON_INVALID, "table "+id.String(), err.Error())
		}
		t.comment = m.Comment
		a.addFlags(t, m.Flags)
		for _, o := range m.Objects {
			a.addObject(t, o)
		}
		for _, f := range m.Flowtables {
			a.addFlowtable(t, f)
		}
		for _, s := range m.Sets {
			a.addFileSet(t, s, false)
		}
		for _, s := range m.Maps {
			a.addFileSet(t, nft.Set(s), true)
		}
		for _, c := range m.Chains {
			a.addChain(t, c)
		}
	}
	if len(a.tables) > MaxTables {
		a.bad.add(weftv1.Reason_REASON_LIMIT, "", fmt.Sprintf("the file has more than %d tables", MaxTables))
	}
}

func (a *admission) addFileSet(t *tableAdmission, d nft.Set, isMap bool) {
	if !a.count(&a.elements, len(d.Elements), MaxElements, "elements") {
		return
	}
	if t.setByName[d.Name] != nil {
		a.bad.add(weftv1.Reason_REASON_INVALID, fmt.Sprintf("table %s %s %s", t.id, kind(isMap), clip(d.Name)), "it is declared twice")
		return
	}
	if s := a.declare(t, d, isMap); s != nil && s.decl != nil && len(d.Elements) > 0 {
		s.chunks = append(s.chunks, a.packFile(t.id, s.decl, d.Elements))
	}
}

// chainOf and setOf turn messages into nft's objects.
func chainOf(m *weftv1.Chain) nft.Chain {
	c := nft.Chain{
		Name: m.GetName(), Type: m.GetType(), Hook: m.GetHook(), Priority: m.GetPriority(),
		Policy: m.GetPolicy(), Device: m.GetDevice(), Devices: m.GetDevices(), Flags: m.GetFlags(), Comment: m.GetComment(),
	}
	if rules := m.GetRules(); len(rules) > 0 {
		c.Rules = make([]nft.Rule, len(rules))
		for i, r := range rules {
			c.Rules[i] = nft.Rule{Text: r.GetText(), Comment: r.GetComment()}
		}
	}
	return c
}

// setOf leaves the elements out: they are packed straight from the message.
func setOf(m *weftv1.Set) nft.Set {
	return nft.Set{
		Name: m.GetName(), Type: m.GetType(), TypeOf: m.GetTypeof(), Flags: m.GetFlags(),
		Timeout: m.GetTimeout().AsDuration(), GCInterval: m.GetGcInterval().AsDuration(),
		Size: m.GetSize(), Policy: m.GetPolicy(), AutoMerge: m.GetAutoMerge(), Stateful: m.GetStateful(), Comment: m.GetComment(),
	}
}
