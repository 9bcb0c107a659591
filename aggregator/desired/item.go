package desired

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
)

// kindFlowtable is the kind of flowtables among items.
const kindFlowtable nft.ObjectKind = "flowtable"

// itemID names an item in its table: the names of each kind are their own.
type itemID = nftobject.Ref

// item is the merge of one declaration without content: a named object or a
// flowtable. Fragments share it, and it is there while one of them declares it.
type item struct {
	node
	id     itemID
	shares []*itemShare
	// kernel is the declaration in the kernel as of the last Accept; zero when it is
	// not there.
	kernel itemDecl
}

// itemShare is one fragment's declaration.
type itemShare struct {
	fragment *fragment
	decl     itemDecl
}

// itemDecl is the declaration of an object or of a flowtable; the other is nil.
type itemDecl struct {
	object    *nftobject.Object
	flowtable *nftobject.Flowtable
}

func (d itemDecl) given() bool { return d.object != nil || d.flowtable != nil }

func (d itemDecl) id() itemID {
	if d.flowtable != nil {
		return itemID{Kind: kindFlowtable, Name: d.flowtable.Name}
	}
	return itemID{Kind: d.object.Kind, Name: d.object.Name}
}

// String is what the declaration says, in nft's words.
func (d itemDecl) String() string {
	if d.object != nil {
		return "{ " + definition(d.object) + " }"
	}
	return "for " + strings.Join(d.flowtable.Devices, ", ")
}

// usage is what a declaration counts for. What an object has counted is not part of it.
func (d itemDecl) usage() Usage {
	u := Usage{Objects: 1}
	if d.object != nil {
		u.Bytes = len(d.object.Name) + len(definition(d.object)) + len(d.object.Comment)
		return u
	}
	u.Bytes = len(d.flowtable.Name)
	for _, dev := range d.flowtable.Devices {
		u.Bytes += len(dev)
	}
	return u
}

// equal reports whether declarations agree, so that the kernel's b can stay where a
// is wanted. The state of a counter or quota is what it begins with, and no part of
// what it is: it stays as it is when that changes.
func (d itemDecl) equal(o itemDecl) bool {
	if d.object != nil && o.object != nil {
		return d.object == o.object || d.object.Same(o.object)
	}
	return d.flowtable != nil && o.flowtable != nil && equalFlowtable(d.flowtable, o.flowtable)
}

// definition is the text of a declaration without the state.
func definition(o *nftobject.Object) string {
	switch o.Kind {
	case nft.ObjectCounter:
		return ""
	case nft.ObjectQuota:
		text, _, _ := strings.Cut(o.Text, " used ")
		return text
	default:
		return o.Text
	}
}

func equalFlowtable(a, b *nftobject.Flowtable) bool {
	return a == b || a.Name == b.Name && a.Hook == b.Hook && a.Priority == b.Priority && a.Flags == b.Flags &&
		slices.Equal(a.Devices, b.Devices)
}

// itemName is an item in nft's words, such as "ct helper ftp".
func itemName(id itemID) string { return string(id.Kind) + " " + id.Name }

func compareItemIDs(a, b itemID) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

// item returns a table's item, made when it is new.
func (t *table) item(id itemID) *item {
	o, ok := t.items[id]
	if !ok {
		o = &item{node: node{name: itemName(id), table: t, origin: -1}, id: id}
		if t.items == nil {
			t.items = map[itemID]*item{}
		}
		t.items[id] = o
	}
	return o
}

func (o *item) exists() bool { return len(o.shares) > 0 }

// decl is the declaration; all shares agree on it.
func (o *item) decl() itemDecl { return o.shares[0].decl }

// orphan returns the share of nobody, which is always the last.
func (o *item) orphan() *itemShare {
	if n := len(o.shares); n > 0 && o.shares[n-1].fragment.orphan {
		return o.shares[n-1]
	}
	return nil
}

// contradicts returns another fragment's share with a different declaration.
func (o *item) contradicts(f *fragment, d itemDecl) *itemShare {
	for _, sh := range o.shares {
		if sh.fragment != f && !sh.decl.equal(d) {
			return sh
		}
	}
	return nil
}

// accept makes the present state the kernel's.
func (o *item) accept() {
	o.kernel = itemDecl{}
	if o.exists() {
		o.kernel = o.decl()
	}
}

func (s *State) markItem(o *item) {
	if !o.dirty {
		o.dirty = true
		o.table.dirtyItems = append(o.table.dirtyItems, o)
		s.markTable(o.table)
	}
}

// attachItem brings a share into its item, and detachItem takes it out.
func (s *State) attachItem(o *item, sh *itemShare) { s.relinkItem(o, sh, true) }
func (s *State) detachItem(o *item, sh *itemShare) { s.relinkItem(o, sh, false) }

func (s *State) relinkItem(o *item, sh *itemShare, in bool) {
	s.markItem(o)
	s.stamp(&o.origin)
	s.linkItem(o, sh, in)
	s.undo = append(s.undo, func() { s.linkItem(o, sh, !in) })
}

// linkItem is its own inverse and writes no journal.
func (s *State) linkItem(o *item, sh *itemShare, in bool) {
	s.work.Objects++
	s.queueItem(o)
	if in {
		i := 0
		for i < len(o.shares) && o.shares[i].fragment.before(sh.fragment) {
			i++
		}
		o.shares = slices.Insert(o.shares, i, sh)
		s.charge(sh.fragment, sh.decl.usage(), +1)
	} else {
		i := slices.Index(o.shares, sh)
		o.shares = slices.Delete(o.shares, i, i+1)
		s.charge(sh.fragment, sh.decl.usage(), -1)
	}
	s.declared(o.table)
}

// redeclareItem changes a share's declaration.
func (s *State) redeclareItem(o *item, sh *itemShare, d itemDecl) {
	s.markItem(o)
	s.stamp(&o.origin)
	s.queueItem(o)
	write := func(d itemDecl) {
		s.charge(sh.fragment, sh.decl.usage(), -1)
		s.charge(sh.fragment, d.usage(), +1)
		sh.decl = d
		s.declared(o.table)
	}
	old := sh.decl
	write(d)
	s.undo = append(s.undo, func() { write(old) })
}

// referItem counts a reference to an item. Marking it lets settle remove the entry
// of a target that does not exist in the end.
func (s *State) referItem(target *item, by int) {
	target.refs += by
	if !target.exists() {
		s.markItem(target)
	}
	if by > 0 {
		s.queueItem(target)
	}
}

// queueItem has the running change check an item in the end. It is called before the
// declaration changes.
func (s *State) queueItem(o *item) {
	if o.queued == s.serial {
		return
	}
	o.queued = s.serial
	q := queuedItem{item: o}
	if o.exists() {
		q.old = o.decl()
	}
	s.checkItems = append(s.checkItems, q)
}

// queuedItem is an item to check, with its declaration before the change; zero where
// it did not exist.
type queuedItem struct {
	*item
	old itemDecl
}

// putItem declares an object or flowtable.
func (a *apply) putItem(h *holding, d itemDecl) {
	o := h.table.item(d.id())
	a.s.markItem(o)
	a.s.work.Objects++
	if other := o.contradicts(h.fragment, d); other != nil {
		if !other.fragment.orphan {
			a.violate(ReasonConflict, h.table, o.name, "declaration of %s contradicts that of %s (%s, not %s): declare it alike or use another name",
				o.name, other.fragment, other.decl, d)
			return
		}
		a.deleteItem(a.s.orphan.tables[h.table.id], o.id)
	}
	if sh, ok := h.items[o.id]; ok {
		if sh.decl != d {
			a.s.redeclareItem(o, sh, d)
		}
	} else {
		sh := &itemShare{fragment: h.fragment, decl: d}
		a.s.attachItem(o, sh)
		h.setItem(o.id, sh)
		a.s.undo = append(a.s.undo, func() { delete(h.items, o.id) })
	}
	if o.orphan() != nil {
		a.deleteItem(a.s.orphan.tables[h.table.id], o.id)
	}
}

// deleteItem gives up an object or flowtable.
func (a *apply) deleteItem(h *holding, id itemID) {
	sh, ok := h.items[id]
	if !ok {
		return
	}
	a.s.detachItem(h.table.items[id], sh)
	delete(h.items, id)
	a.s.undo = append(a.s.undo, func() { h.items[id] = sh })
}

// setItem notes a share in what a fragment holds.
func (h *holding) setItem(id itemID, sh *itemShare) {
	if h.items == nil {
		h.items = map[itemID]*itemShare{}
	}
	h.items[id] = sh
}

// itemDecls returns what an update declares, objects first.
func (tu *TableUpdate) itemDecls() []itemDecl {
	if len(tu.PutObjects)+len(tu.PutFlowtables) == 0 {
		return nil
	}
	all := make([]itemDecl, 0, len(tu.PutObjects)+len(tu.PutFlowtables))
	for _, o := range tu.PutObjects {
		all = append(all, itemDecl{object: o})
	}
	for _, f := range tu.PutFlowtables {
		all = append(all, itemDecl{flowtable: f})
	}
	return all
}

// itemIDs are those of what an update declares.
func (tu *TableUpdate) itemIDs() map[itemID]bool {
	decls := tu.itemDecls()
	if decls == nil {
		return nil
	}
	ids := make(map[itemID]bool, len(decls))
	for _, d := range decls {
		if d.given() {
			ids[d.id()] = true
		}
	}
	return ids
}

// items takes in what an update declares and gives up of objects and flowtables.
func (a *apply) items(h *holding, tu *TableUpdate) {
	for _, id := range tu.DeleteObjects {
		a.deleteItem(h, id)
	}
	for _, name := range tu.DeleteFlowtables {
		a.deleteItem(h, itemID{Kind: kindFlowtable, Name: name})
	}
	var seen map[itemID]bool
	for _, d := range tu.itemDecls() {
		switch {
		case !d.given():
			a.violate(ReasonInvalid, h.table, "", "an object has no declaration: give it a kind and a name")
		case seen[d.id()]:
			a.violate(ReasonInvalid, h.table, itemName(d.id()), "%s is declared twice: join the declarations", itemName(d.id()))
		default:
			if seen == nil {
				seen = map[itemID]bool{}
			}
			seen[d.id()] = true
			a.putItem(h, d)
		}
	}
}

// itemChange is an item with what the kernel has of it.
type itemChange struct {
	item   *item
	before itemDecl
}

// anew reports whether an item that is there must be made anew: the kernel changes
// none of them in place.
func (ic *itemChange) anew() bool {
	return ic.before.given() && ic.item.exists() && !ic.before.equal(ic.item.decl())
}

// item brings an object or flowtable to what it should be.
func (p *planner) item(t nft.TableID, ic *itemChange) {
	o := ic.item
	if ic.before.given() && (!o.exists() || ic.anew()) {
		p.counts.Objects++
		if ic.before.flowtable != nil {
			p.add(deleteItems, o.origin, kernel.DeleteFlowtable{Table: t, Name: ic.before.flowtable.Name})
		} else {
			p.add(deleteItems, o.origin, kernel.DeleteObject{Table: t, Ref: o.id})
		}
	}
	if !o.exists() || ic.before.given() && !ic.anew() {
		return
	}
	p.counts.Objects++
	if d := o.decl(); d.flowtable != nil {
		p.add(addItems, o.origin, kernel.AddFlowtable{Table: t, Flowtable: d.flowtable})
	} else {
		p.add(addItems, o.origin, kernel.AddObject{Table: t, Object: d.object})
	}
}

// ruleItems are the objects and flowtables that a rule refers to.
func ruleItems(r *compile.Rule) []itemID {
	if len(r.Flowtables) == 0 {
		return r.Objects
	}
	ids := slices.Clone(r.Objects)
	for _, name := range r.Flowtables {
		ids = append(ids, itemID{Kind: kindFlowtable, Name: name})
	}
	return ids
}

// uniqueItems sorts IDs and removes repeats.
func uniqueItems(ids []itemID) []itemID {
	slices.SortFunc(ids, compareItemIDs)
	return slices.Compact(ids)
}

// sortedItems returns a map's keys in order.
func sortedItems[V any](m map[itemID]V) []itemID {
	if len(m) == 0 {
		return nil
	}
	ids := make([]itemID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareItemIDs)
	return ids
}

// itemsOf are the declarations of a dumped table.
func itemsOf(d *kernel.Table) []itemDecl {
	tu := TableUpdate{PutObjects: d.Objects, PutFlowtables: d.Flowtables}
	return slices.DeleteFunc(tu.itemDecls(), func(d itemDecl) bool { return !d.given() })
}
