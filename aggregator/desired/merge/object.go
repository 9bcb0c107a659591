package merge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// ObjectID names a part of a table. Each kind has its own names.
type ObjectID = nftobject.Ref

type Object struct{ shared[*ObjectShare] }

type ObjectShare struct {
	Fragment *Fragment
	Decl     ObjectDecl
}

func (sh *ObjectShare) Usage() desired.Usage { return sh.Decl.Usage() }

// ObjectDecl is a declaration; one field is nil.
type ObjectDecl struct {
	Object    *nftobject.Object
	Flowtable *nftobject.Flowtable
}

func (d ObjectDecl) ID() ObjectID {
	if d.Flowtable != nil {
		return ObjectID{Kind: KindFlowtable, Name: d.Flowtable.Name}
	}
	return ObjectID{Kind: d.Object.Kind, Name: d.Object.Name}
}

func (d ObjectDecl) String() string {
	if d.Object != nil {
		return "{ " + Definition(d.Object) + " }"
	}
	return "for " + strings.Join(d.Flowtable.Devices, ", ")
}

// Usage leaves out the object's state.
func (d ObjectDecl) Usage() desired.Usage {
	u := desired.Usage{Objects: 1, Memory: cost.Object()}
	if d.Object != nil {
		u.Bytes = len(d.Object.Name) + len(Definition(d.Object)) + len(d.Object.Comment)
		return u
	}
	u.Bytes, u.Memory = len(d.Flowtable.Name), cost.Flowtable()
	for _, dev := range d.Flowtable.Devices {
		u.Bytes += len(dev)
	}
	return u
}

// Equal reports whether one can stay for the other. The state of a counter or quota is only its
// start.
func (d ObjectDecl) Equal(o ObjectDecl) bool {
	if d.Object != nil && o.Object != nil {
		return d.Object == o.Object || d.Object.Same(o.Object)
	}
	return d.Flowtable != nil && o.Flowtable != nil && equalFlowtable(d.Flowtable, o.Flowtable)
}

// Definition is the text without the state.
func Definition(o *nftobject.Object) string {
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

func compareObjectIDs(a, b ObjectID) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

// Decl is the declaration; all shares agree on it.
func (o *Object) Decl() ObjectDecl { return o.Shares[0].Decl }

func (o *Object) Declared() any { return o.Decl() }

func (o *Object) Remade(before any) bool { return !before.(ObjectDecl).Equal(o.Decl()) }

func (o *Object) Addition() kernel.Op {
	if d := o.Decl(); d.Flowtable != nil {
		return kernel.AddFlowtable{Table: o.Table.ID, Flowtable: d.Flowtable}
	}
	return kernel.AddObject{Table: o.Table.ID, Object: o.Decl().Object}
}

func (o *Object) Removal(any) []kernel.Op {
	if o.ID.Kind == KindFlowtable {
		return []kernel.Op{kernel.DeleteFlowtable{Table: o.Table.ID, Name: o.ID.Name}}
	}
	return []kernel.Op{kernel.DeleteObject{Table: o.Table.ID, Ref: o.ID}}
}

func (o *Object) link(s *State, sh Share, in, _ bool) { o.place(&s.ledger, sh.(*ObjectShare), in) }

func (o *Object) Accept(*Decision) {}

func (o *Object) clearChanges() {}

func (a *Apply) putObject(h *Holding, d ObjectDecl) {
	o := h.Table.Object(d.ID())
	if !agrees(a, h, o, o.Shares, func(sh *ObjectShare) (string, bool) {
		return fmt.Sprintf(" (%s, not %s)", sh.Decl, d), !sh.Decl.Equal(d)
	}) {
		return
	}
	if sh, ok := h.Shares[o.ID].(*ObjectShare); !ok {
		a.join(h, o, &ObjectShare{Fragment: h.Fragment, Decl: d})
	} else if sh.Decl != d {
		redeclare(a.s, o, sh, &sh.Decl, d, nil)
	}
	if o.unclaimed() != nil {
		a.giveUp(a.s.Unclaimed.Tables[h.Table.ID], o.ID)
	}
}

// ObjectDecls returns the declarations of an update, named objects first.
func ObjectDecls(tu *desired.TableUpdate) []ObjectDecl {
	all := make([]ObjectDecl, 0, len(tu.PutObjects)+len(tu.PutFlowtables))
	for _, o := range tu.PutObjects {
		all = append(all, ObjectDecl{Object: o})
	}
	for _, f := range tu.PutFlowtables {
		all = append(all, ObjectDecl{Flowtable: f})
	}
	return all
}

// AppendReferences appends the parts that a rule refers to.
func AppendReferences(ids []ObjectID, r *compile.Rule) []ObjectID {
	ids = AppendNames(ids, KindSet, r.Sets)
	ids = AppendNames(ids, KindChain, r.Chains)
	ids = AppendNames(ids, KindFlowtable, r.Flowtables)
	return append(ids, r.Objects...)
}

func AppendNames(ids []ObjectID, kind nft.ObjectKind, names []string) []ObjectID {
	for _, name := range names {
		ids = append(ids, ObjectID{Kind: kind, Name: name})
	}
	return ids
}

// SortIDs sorts IDs and removes repeats.
func SortIDs(ids []ObjectID) []ObjectID {
	slices.SortFunc(ids, compareObjectIDs)
	return slices.Compact(ids)
}

func SortedObjects[V any](m map[ObjectID]V) []ObjectID {
	return slices.SortedFunc(maps.Keys(m), compareObjectIDs)
}

// LeadsTo returns the chain or object that an element leads to; its name may be empty. Verdict data
// is four bytes of code, then the name: see compile.VerdictData.
func LeadsTo(d *nftset.Set, data string) ObjectID {
	switch {
	case d.Object != "":
		return ObjectID{Kind: d.Object, Name: data}
	case d.Verdict && len(data) > 4:
		return ObjectID{Kind: KindChain, Name: data[4:]}
	default:
		return ObjectID{}
	}
}
