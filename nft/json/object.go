package json

import (
	"maps"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/internal/scan"
)

func (r *reader) flowtable(o node, t *table) {
	f := nft.Flowtable{Name: r.name(o.get("name")), Hook: o.get("hook").text(), Devices: o.get("dev").texts(), Flags: o.get("flags").texts()}
	if n := o.get("prio"); n.v != nil {
		f.Priority = n.describe()
	}
	t.Flowtables = append(t.Flowtables, f)
}

func (r *reader) named(kind nft.ObjectKind, o node, t *table) {
	x := &writer{}
	name := r.name(o.get("name"))
	x.phrase(o, objects[kind])
	if kind == nft.ObjectCTTimeout {
		x.policy(o.get("policy"))
	}
	if x.err != nil {
		r.fail(x.err)
		return
	}
	t.Objects = append(t.Objects, nft.Object{
		Kind: kind, Name: name, Text: strings.TrimSpace(x.b.String()), Comment: o.get("comment").comment(),
	})
}

// policy writes the times ordered by the names of the states.
func (x *writer) policy(n node) {
	states := slices.Sorted(maps.Keys(n.object()))
	if len(states) == 0 {
		return
	}
	x.str("; policy = { ")
	for i, s := range states {
		x.separator(i, ", ")
		if !scan.IsName(s) {
			x.fail(n.get(s), "unexpected %q: want a state", s)
		}
		x.str(s, " : ")
		x.num(n.get(s))
	}
	x.str(" }")
}
