package publish

import (
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// objects are what a fragment has in a table beside chains and sets.
type objects struct {
	// flags are those of the table.
	flags      []string
	named      []*weftv1.Object
	flowtables []*weftv1.Flowtable
}

func (o *objects) clone() objects {
	return objects{flags: slices.Clone(o.flags), named: slices.Clone(o.named), flowtables: slices.Clone(o.flowtables)}
}

// addObjects takes over what a part of a snapshot has.
func (o *objects) addObjects(m *weftv1.Table) {
	for _, f := range m.GetFlags() {
		if !slices.Contains(o.flags, f) {
			o.flags = append(o.flags, f)
		}
	}
	o.named = append(o.named, m.GetObjects()...)
	o.flowtables = append(o.flowtables, m.GetFlowtables()...)
}

// patchObjects applies what a patch says of objects and flowtables.
func (o *objects) patchObjects(m *weftv1.TablePatch) {
	o.named = slices.DeleteFunc(o.named, func(x *weftv1.Object) bool {
		return slices.ContainsFunc(m.GetDeleteObjects(), func(n *weftv1.ObjectReference) bool { return n.GetKind() == x.GetKind() && n.GetName() == x.GetName() })
	})
	o.flowtables = slices.DeleteFunc(o.flowtables, func(x *weftv1.Flowtable) bool { return slices.Contains(m.GetDeleteFlowtables(), x.GetName()) })
	for _, p := range m.GetPutObjects() {
		o.named = replace(o.named, p, func(x *weftv1.Object) bool { return x.GetKind() == p.GetKind() && x.GetName() == p.GetName() })
	}
	for _, p := range m.GetPutFlowtables() {
		o.flowtables = replace(o.flowtables, p, func(x *weftv1.Flowtable) bool { return x.GetName() == p.GetName() })
	}
}

// replace puts x into the place of the one that is the same, or at the end.
func replace[T any](list []T, x T, same func(T) bool) []T {
	if i := slices.IndexFunc(list, same); i >= 0 {
		list[i] = x
		return list
	}
	return append(list, x)
}
