package kernel

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
)

// scopeObjects are the compiled objects and flowtables of a table.
type scopeObjects struct {
	objects    []*object.Object
	flowtables []*object.Flowtable
}

// compile compiles the objects of a table.
func (s *scopeObjects) compile(t *nft.Table) error {
	for i := range t.Objects {
		o, err := object.Compile(t.Family, &t.Objects[i])
		if err != nil {
			return err
		}
		s.objects = append(s.objects, o)
	}
	for i := range t.Flowtables {
		f, err := object.CompileFlowtable(&t.Flowtables[i])
		if err != nil {
			return err
		}
		s.flowtables = append(s.flowtables, f)
	}
	return nil
}

// ops returns the ops that add the objects.
func (s *scopeObjects) ops(id nft.TableID) []Op {
	var out []Op
	for _, o := range s.objects {
		out = append(out, AddObject{Table: id, Object: o})
	}
	for _, f := range s.flowtables {
		out = append(out, AddFlowtable{Table: id, Flowtable: f})
	}
	return out
}

// Object implements compile.Scope.
func (s *tableScope) Object(kind nft.ObjectKind, name string) bool {
	return slices.ContainsFunc(s.extra.objects, func(o *object.Object) bool { return o.Kind == kind && o.Name == name })
}

// Flowtable implements compile.Scope.
func (s *tableScope) Flowtable(name string) bool {
	return slices.ContainsFunc(s.extra.flowtables, func(f *object.Flowtable) bool { return f.Name == name })
}
