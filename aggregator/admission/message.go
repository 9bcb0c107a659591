package admission

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/json"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// AddFragment adds one part of a snapshot. The first part has the fragment's priority, lifetime and
// expiration.
func (b *Builder) AddFragment(f *weftv1.Fragment) {
	first := b.parts == 0
	b.parts++
	if !b.count(&b.bytes, proto.Size(f), MaxBytes, "bytes") {
		return
	}
	if p := b.limited(); p != nil {
		b.unpacked.add(f, p.Limits.Most[access.LimitRules], p.Limits.Most[access.LimitSets])
	}
	if !b.checkTables(f.GetTables()) || !b.known(f.UnknownField()) {
		return
	}
	if first {
		b.priority, b.lifetime, b.expiry = f.GetPriority(), EffectiveLifetime(f.GetLifetime()), b.expires(f)
		if _, ok := weftv1.Lifetime_name[int32(f.GetLifetime())]; !ok {
			b.Reject(weftv1.Violation_REASON_INVALID, fmt.Sprintf("lifetime %d is unknown", f.GetLifetime()))
		}
	}
	if first && b.lifetime == weftv1.Lifetime_LIFETIME_DURABLE && !b.cfg.Durable {
		b.Reject(weftv1.Violation_REASON_INVALID, "lifetime durable needs a state directory: start the aggregator with --state-dir")
	}
	if f.GetNft() != "" {
		if len(f.GetTables()) > 0 {
			b.Reject(weftv1.Violation_REASON_INVALID, "the fragment has both tables and nft: give one of them")
			return
		}
		b.addFile(f.GetNft())
		return
	}
	for _, t := range f.GetTables() {
		b.addTable(t)
	}
}

// known adds a violation for an unknown field. To ignore a qualifier of a rule could open a
// firewall.
func (b *Builder) known(unknown *weftv1.UnknownField) bool {
	if unknown == nil {
		return true
	}
	version := ""
	if b.cfg.Version != "" {
		version = "; this daemon is " + b.cfg.Version + ": update it"
	}
	b.bad.add(weftv1.Violation_REASON_INVALID, unknown.Object, fmt.Sprintf("unknown field %d%s", unknown.Number, version))
	return false
}

// EffectiveLifetime returns sticky for an unspecified lifetime.
func EffectiveLifetime(l weftv1.Lifetime) weftv1.Lifetime {
	if l == weftv1.Lifetime_LIFETIME_UNSPECIFIED {
		return weftv1.Lifetime_LIFETIME_STICKY
	}
	return l
}

func (b *Builder) addTable(m *weftv1.Table) {
	t := b.table(m.GetFamily(), m.GetName())
	if t == nil {
		return
	}
	if m.GetComment() != "" && b.checkTexts(func() *weftv1.ObjectName { return tableName(t.Table) }, m.GetComment()) {
		if err := userdata.CheckComment(m.GetComment()); err != nil {
			b.bad.add(weftv1.Violation_REASON_INVALID, tableName(t.Table), err.Error())
		}
		t.Comment = m.GetComment()
	}
	b.addFlags(t, m.GetFlags())
	b.addDeclarations(t, m)
}

func (b *Builder) addDeclarations(t *tablePart, m *weftv1.Table) {
	for _, o := range m.GetObjects() {
		b.addObject(t, convert.ObjectOf(o))
	}
	for _, f := range m.GetFlowtables() {
		b.addFlowtable(t, convert.FlowtableOf(f))
	}
	for _, s := range m.GetSets() {
		b.addSet(t, s, false)
	}
	for _, s := range m.GetMaps() {
		b.addSet(t, s, true)
	}
	for _, c := range m.GetChains() {
		b.addChain(t, convert.ChainOf(c))
	}
}

// AddPatch adds a patch.
func (b *Builder) AddPatch(p *weftv1.Patch) {
	if !b.count(&b.bytes, proto.Size(p), MaxBytes, "bytes") || !b.known(p.UnknownField()) {
		return
	}
	for _, m := range p.GetTables() {
		t := b.table(m.GetFamily(), m.GetName())
		if t == nil {
			continue
		}
		for _, n := range m.GetDeleteObjects() {
			t.DeleteObjects = append(t.DeleteObjects, object.Ref{Kind: nft.ObjectKind(n.GetKind()), Name: n.GetName()})
		}
		t.DeleteFlowtables = append(t.DeleteFlowtables, m.GetDeleteFlowtables()...)
		t.DeleteChains = append(t.DeleteChains, m.GetDeleteChains()...)
		t.DeleteSets = append(t.DeleteSets, m.GetDeleteSets()...)
		b.addDeclarations(t, &weftv1.Table{
			Objects: m.GetPutObjects(), Flowtables: m.GetPutFlowtables(), Sets: m.GetPutSets(), Maps: m.GetPutMaps(), Chains: m.GetPutChains(),
		})
		for _, e := range m.GetElements() {
			b.addElements(t, e)
		}
	}
}

// addElements changes a set declared by the fragment or the same patch.
func (b *Builder) addElements(t *tablePart, e *weftv1.ElementPatch) {
	n := len(e.GetAdd()) + len(e.GetRemove()) + weftv1.CountPacked(e.GetAddPacked()) + weftv1.CountPacked(e.GetRemovePacked())
	if !b.count(&b.elements, n, MaxElements, "elements") {
		return
	}
	var decl *set.Set
	if s := t.setByName[e.GetSet()]; s != nil {
		decl = s.Decl
		if decl == nil {
			return
		}
	} else if decl, _ = b.own.Set(t.Table, e.GetSet()); decl == nil || slices.Contains(t.DeleteSets, e.GetSet()) {
		b.bad.add(weftv1.Violation_REASON_REFERENCE, ObjectName(t.Table, "set", Clip(e.GetSet())),
			"the fragment has no such set or map: declare it in put_sets or put_maps")
		return
	}
	x := &elementsPart{Elements: desired.Elements{Set: e.GetSet(), Decl: decl}}
	if len(e.GetRemove()) > 0 {
		x.remove = append(x.remove, b.packKeys(t.Table, decl, e.GetRemove()))
	}
	for _, m := range e.GetRemovePacked() {
		x.remove = append(x.remove, b.unpack(t.Table, decl, m.GetCount(), func() ([]set.Element, error) {
			return set.UnpackKeys(decl, int(m.GetCount()), m.GetKeys())
		}))
	}
	if len(e.GetAdd()) > 0 {
		x.add = append(x.add, b.packMessages(t.Table, decl, e.GetAdd()))
	}
	for _, m := range e.GetAddPacked() {
		x.add = append(x.add, b.unpackElements(t.Table, decl, m))
	}
	t.changes = append(t.changes, x)
}

// addSet declares a set, or adds elements if a later part repeats the name without a type.
func (b *Builder) addSet(t *tablePart, m *weftv1.Set, isMap bool) {
	if !b.count(&b.elements, len(m.GetElements())+weftv1.CountPacked(m.GetPacked()), MaxElements, "elements") {
		return
	}
	s := t.setByName[m.GetName()]
	if s == nil {
		s = b.declare(t, m, isMap)
	} else if m.GetType() != "" || m.GetTypeof() != "" {
		b.bad.add(weftv1.Violation_REASON_INVALID, ObjectName(t.Table, SetKind(isMap), Clip(m.GetName())), "it is declared twice")
		return
	}
	if s == nil || s.Decl == nil {
		return
	}
	if len(m.GetElements()) > 0 {
		s.chunks = append(s.chunks, b.packMessages(t.Table, s.Decl, m.GetElements()))
	}
	for _, p := range m.GetPacked() {
		s.chunks = append(s.chunks, b.unpackElements(t.Table, s.Decl, p))
	}
}

// declare returns nil if there are too many sets.
func (b *Builder) declare(t *tablePart, m *weftv1.Set, isMap bool) *setPart {
	if !b.count(&b.sets, 1, MaxSets, "sets and maps") {
		return nil
	}
	source, role := convert.SetOf(m), m.GetRole()
	s := &setPart{Set: desired.Set{
		Source: &source, Conntrack: role == weftv1.MapRole_MAP_ROLE_CONNTRACK, Affinity: role == weftv1.MapRole_MAP_ROLE_AFFINITY,
	}}
	object := ObjectName(t.Table, SetKind(isMap), Clip(source.Name))
	if t.setByName == nil {
		t.setByName = make(map[string]*setPart)
	}
	t.setByName[source.Name] = s
	t.sets = append(t.sets, s)
	if err := b.checkName(source.Name); err != nil {
		b.bad.add(weftv1.Violation_REASON_INVALID, object, err.Error())
		return s
	}
	texts := append([]string{source.Type, source.TypeOf, source.Policy, source.Comment}, slices.Concat(source.Flags, source.Stateful)...)
	if !b.checkTexts(func() *weftv1.ObjectName { return object }, texts...) {
		return s
	}
	if err := cmp.Or(checkDuration("timeout", m.GetTimeout()), checkDuration("gc-interval", m.GetGcInterval())); err != nil {
		b.bad.add(weftv1.Violation_REASON_INVALID, object, err.Error())
		return s
	}
	if _, ok := weftv1.MapRole_name[int32(role)]; !ok {
		b.bad.add(weftv1.Violation_REASON_INVALID, object, fmt.Sprintf("role %d is unknown", role))
	} else if !isMap && role != weftv1.MapRole_MAP_ROLE_UNSPECIFIED {
		b.bad.add(weftv1.Violation_REASON_INVALID, object, "a set cannot have a role: only a map can")
	}
	decl, err := convert.CompileSet(t.Table.Family, m, isMap)
	if err != nil {
		b.bad.compile(object, err)
		return s
	}
	if p := b.limited(); p != nil {
		b.bad.refused(object, p.Times(decl.Timeout, decl.GCInterval))
	}
	s.Decl = decl
	return s
}

func (b *Builder) addChain(t *tablePart, c nft.Chain) {
	if !b.count(&b.chains, 1, MaxChains, "chains") || !b.count(&b.rules, len(c.Rules), MaxRules, "rules") {
		return
	}
	what, ok := b.claim(t, object.Ref{Kind: "chain", Name: c.Name}, ": give all its rules at once")
	if !ok {
		return
	}
	texts := append([]string{c.Type, c.Hook, c.Priority, c.Policy, c.Device, c.Comment}, slices.Concat(c.Devices, c.Flags)...)
	if !b.checkTexts(func() *weftv1.ObjectName { return what }, texts...) {
		return
	}
	decl, err := object.CompileChain(t.Table.Family, &c)
	if err != nil {
		b.bad.compile(what, err)
		// to report all violations at once
		decl = &object.Chain{Name: c.Name}
	}
	rules := c.Rules
	c.Rules = nil
	t.chains = append(t.chains, &chainPart{Chain: desired.Chain{Source: &c, Decl: decl}, rules: rules})
}

func (b *Builder) addFile(text string) {
	tables, err := json.ParseFile(b.key.Name, text)
	if err != nil {
		b.bad.file(err)
		return
	}
	b.file.text = text
	messages := make([]*weftv1.Table, 0, len(tables))
	for _, t := range tables {
		messages = append(messages, convert.Table(t))
	}
	if !b.checkTables(messages) {
		return
	}
	for _, m := range messages {
		b.addTable(m)
	}
}
