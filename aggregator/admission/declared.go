package admission

import (
	"maps"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// Declared has the sets and maps of a fragment, by table. It is immutable.
type Declared map[nft.TableID]map[string]*set.Set

// Set returns the declaration of a set or map.
func (d Declared) Set(table nft.TableID, name string) (*set.Set, bool) {
	s, ok := d[table][name]
	return s, ok
}

// Declared returns the sets and maps after the update. changed is false for a patch without sets
// and maps.
func (b *Builder) Declared() (_ Declared, changed bool) {
	changed = b.snapshot
	for _, t := range b.tables {
		changed = changed || len(t.sets) > 0 || len(t.DeleteSets) > 0
	}
	if !changed {
		return b.own, false
	}
	out := Declared{}
	maps.Copy(out, b.own)
	for _, t := range b.tables {
		sets := make(map[string]*set.Set, len(b.own[t.Table])+len(t.sets))
		maps.Copy(sets, b.own[t.Table])
		for _, name := range t.DeleteSets {
			delete(sets, name)
		}
		for _, s := range t.sets {
			sets[s.Source.Name] = s.Decl
		}
		out[t.Table] = sets
	}
	return out, true
}
