package check

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// objects compiles the objects and flowtables of a table.
func (c *checker) objects(u *unit, t *nft.Table, s *scope) {
	count := func(kind, name string, err error) bool {
		if err != nil {
			u.fail(u.places.Error(ruleset.PlaceID{Table: t.ID(), Kind: kind, Name: name}, err.Error()))
			return false
		}
		if !u.Context {
			c.out.Objects++
		}
		return true
	}
	for i := range t.Objects {
		o := &t.Objects[i]
		if _, err := object.Compile(t.Family, o); count(string(o.Kind), o.Name, err) {
			s.objects[object.Ref{Kind: o.Kind, Name: o.Name}] = true
		}
	}
	for i := range t.Flowtables {
		f := &t.Flowtables[i]
		if _, err := object.CompileFlowtable(f); count("flowtable", f.Name, err) {
			s.flowtables[f.Name] = true
		}
	}
}
