package aggregatortest

import (
	"slices"
	"syscall"

	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
)

// doObject carries out an op on a named object or flowtable.
func (b *batch) doObject(op kernel.Op) (syscall.Errno, string) {
	t := b.tables[kernel.TableOf(op)]
	if t == nil {
		return syscall.ENOENT, ""
	}
	switch o := op.(type) {
	case kernel.AddObject:
		ref := object.Ref{Kind: o.Object.Kind, Name: o.Object.Name}
		if t.objects[ref] == nil {
			// One that is there stays as it is.
			t.objects[ref] = o.Object
		}
		return 0, ""
	case kernel.DeleteObject:
		return t.deleteObject(o.Ref)
	case kernel.AddFlowtable:
		t.flowtables[o.Flowtable.Name] = o.Flowtable
		return 0, ""
	case kernel.DeleteFlowtable:
		switch {
		case t.flowtables[o.Name] == nil:
			return syscall.ENOENT, ""
		case t.refers(func(r *compile.Rule) []string { return r.Flowtables }, o.Name):
			return syscall.EBUSY, ""
		}
		delete(t.flowtables, o.Name)
		return 0, ""
	default:
		return syscall.EOPNOTSUPP, ""
	}
}

// deleteObject refuses objects that a rule or an element refers to.
func (t *table) deleteObject(ref object.Ref) (syscall.Errno, string) {
	if t.objects[ref] == nil {
		return syscall.ENOENT, ""
	}
	for _, c := range t.chains {
		for _, r := range c.rules {
			if slices.Contains(r.rule.Objects, ref) {
				return syscall.EBUSY, ""
			}
		}
	}
	for _, s := range t.sets {
		for _, e := range s.elements {
			if s.decl.Object == ref.Kind && e.Data == ref.Name {
				return syscall.EBUSY, ""
			}
		}
	}
	delete(t.objects, ref)
	return 0, ""
}

// missing reports an object or flowtable that a rule refers to and that is not there.
func (t *table) missing(r *compile.Rule) (syscall.Errno, string) {
	for _, ref := range r.Objects {
		if t.objects[ref] == nil {
			return syscall.ENOENT, "object " + ref.Name
		}
	}
	for _, name := range r.Flowtables {
		if t.flowtables[name] == nil {
			return syscall.ENOENT, "flowtable " + name
		}
	}
	return 0, ""
}
