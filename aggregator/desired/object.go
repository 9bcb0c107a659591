package desired

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// objectID names a part of a table. Each kind has its own names.
type objectID = nftobject.Ref

// object is the merge of one declaration without content: a named object or a
// flowtable. It exists while a fragment declares it.
type object struct{ shared[*objectShare] }

// objectShare is one fragment's declaration.
type objectShare struct {
	fragment *fragment
	decl     objectDecl
}

func (sh *objectShare) usage() Usage { return sh.decl.usage() }

// objectDecl is the declaration of an object or of a flowtable; the other is nil.
type objectDecl struct {
	object    *nftobject.Object
	flowtable *nftobject.Flowtable
}

func (d objectDecl) id() objectID {
	if d.flowtable != nil {
		return objectID{Kind: kindFlowtable, Name: d.flowtable.Name}
	}
	return objectID{Kind: d.object.Kind, Name: d.object.Name}
}

// String returns the declaration as nft writes it.
func (d objectDecl) String() string {
	if d.object != nil {
		return "{ " + definition(d.object) + " }"
	}
	return "for " + strings.Join(d.flowtable.Devices, ", ")
}

// usage returns the size of a declaration for Usage, without the state of the
// object.
func (d objectDecl) usage() Usage {
	u := Usage{Objects: 1, Memory: cost.Object()}
	if d.object != nil {
		u.Bytes = len(d.object.Name) + len(definition(d.object)) + len(d.object.Comment)
		return u
	}
	u.Bytes, u.Memory = len(d.flowtable.Name), cost.Flowtable()
	for _, dev := range d.flowtable.Devices {
		u.Bytes += len(dev)
	}
	return u
}

// equal reports whether declarations agree, so that the kernel's b can stay
// where a is wanted. The state of a counter or quota is only what it starts
// with: if the state changes, the object stays as it is.
func (d objectDecl) equal(o objectDecl) bool {
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

func compareObjectIDs(a, b objectID) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

// decl is the declaration; all shares agree on it.
func (o *object) decl() objectDecl { return o.shares[0].decl }

func (o *object) declared() any { return o.decl() }

func (o *object) remade(before any) bool { return !before.(objectDecl).equal(o.decl()) }

func (o *object) addition() kernel.Op {
	if d := o.decl(); d.flowtable != nil {
		return kernel.AddFlowtable{Table: o.table.id, Flowtable: d.flowtable}
	}
	return kernel.AddObject{Table: o.table.id, Object: o.decl().object}
}

func (o *object) removal(any) []kernel.Op {
	if o.id.Kind == kindFlowtable {
		return []kernel.Op{kernel.DeleteFlowtable{Table: o.table.id, Name: o.id.Name}}
	}
	return []kernel.Op{kernel.DeleteObject{Table: o.table.id, Ref: o.id}}
}

func (o *object) link(s *State, sh share, in, _ bool) { o.place(s, sh.(*objectShare), in) }

func (o *object) accept(*decision) {}

func (o *object) clearChanges() {}

// putObject declares an object or flowtable.
func (a *apply) putObject(h *holding, d objectDecl) {
	o := h.table.object(d.id())
	if !agrees(a, h, o, o.shares, func(sh *objectShare) (string, bool) {
		return fmt.Sprintf(" (%s, not %s)", sh.decl, d), !sh.decl.equal(d)
	}) {
		return
	}
	if sh, ok := h.shares[o.id].(*objectShare); !ok {
		a.join(h, o, &objectShare{fragment: h.fragment, decl: d})
	} else if sh.decl != d {
		redeclare(a.s, o, sh, &sh.decl, d, nil)
	}
	if o.unclaimed() != nil {
		a.giveUp(a.s.unclaimed.tables[h.table.id], o.id)
	}
}

// objectDecls returns the declarations of an update, named objects first.
func (tu *TableUpdate) objectDecls() []objectDecl {
	all := make([]objectDecl, 0, len(tu.PutObjects)+len(tu.PutFlowtables))
	for _, o := range tu.PutObjects {
		all = append(all, objectDecl{object: o})
	}
	for _, f := range tu.PutFlowtables {
		all = append(all, objectDecl{flowtable: f})
	}
	return all
}

// appendReferences appends the parts of the table that a rule refers to.
func appendReferences(ids []objectID, r *compile.Rule) []objectID {
	ids = appendNames(ids, kindSet, r.Sets)
	ids = appendNames(ids, kindChain, r.Chains)
	ids = appendNames(ids, kindFlowtable, r.Flowtables)
	return append(ids, r.Objects...)
}

func appendNames(ids []objectID, kind nft.ObjectKind, names []string) []objectID {
	for _, name := range names {
		ids = append(ids, objectID{Kind: kind, Name: name})
	}
	return ids
}

// sortIDs sorts IDs and removes repeats.
func sortIDs(ids []objectID) []objectID {
	slices.SortFunc(ids, compareObjectIDs)
	return slices.Compact(ids)
}

// sortedObjects returns a map's keys in order.
func sortedObjects[V any](m map[objectID]V) []objectID {
	return slices.SortedFunc(maps.Keys(m), compareObjectIDs)
}

// dumpedPart is a declaration of a dumped table. For a chain or set it comes with the
// content.
type dumpedPart struct {
	id    objectID
	decl  any
	chain *kernel.Chain
	set   *kernel.Set
}

// dumpedParts returns the declarations of a dumped table.
func dumpedParts(d *kernel.Table) []dumpedPart {
	var all []dumpedPart
	tu := TableUpdate{PutObjects: d.Objects, PutFlowtables: d.Flowtables}
	for _, decl := range tu.objectDecls() {
		all = append(all, dumpedPart{id: decl.id(), decl: decl})
	}
	for i := range d.Sets {
		if decl := d.Sets[i].Decl; decl != nil {
			all = append(all, dumpedPart{id: setID(decl.Name), decl: decl, set: &d.Sets[i]})
		}
	}
	for i := range d.Chains {
		if decl := d.Chains[i].Decl; decl != nil {
			all = append(all, dumpedPart{id: chainID(decl.Name), decl: decl, chain: &d.Chains[i]})
		}
	}
	return all
}

// leadsTo returns the chain or object that an element with the given data leads
// to. Its name is empty if the element leads to none. The data of a verdict are four
// bytes of code, then the name of a chain: see compile.VerdictData.
func leadsTo(d *nftset.Set, data string) objectID {
	switch {
	case d.Object != "":
		return objectID{Kind: d.Object, Name: data}
	case d.Verdict && len(data) > 4:
		return objectID{Kind: kindChain, Name: data[4:]}
	default:
		return objectID{}
	}
}
