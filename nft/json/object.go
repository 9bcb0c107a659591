package json

import (
	"maps"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/internal/scan"
)

// flowtable reads a flowtable.
func (r *reader) flowtable(o node, t *table) {
	f := nft.Flowtable{Name: r.name(o.get("name")), Hook: o.get("hook").text(), Devices: o.get("dev").texts(), Flags: o.get("flags").texts()}
	if n := o.get("prio"); n.v != nil {
		f.Priority = n.describe()
	}
	t.Flowtables = append(t.Flowtables, f)
}

// named reads a named object.
func (r *reader) named(kind nft.ObjectKind, o node, t *table) {
	x := &writer{}
	name := r.name(o.get("name"))
	switch kind {
	case nft.ObjectCounter:
		x.option(o, "packets")
		x.option(o, "bytes")
	case nft.ObjectQuota:
		x.over(o)
		x.num(o.get("bytes"))
		x.str(" bytes")
		if o.has("used") && o.get("used").number() != "0" {
			x.option(o, "used")
			x.str(" bytes")
		}
	case nft.ObjectLimit:
		x.limit(o)
	case nft.ObjectSecMark:
		x.quoted(o.get("context"))
	case nft.ObjectSynProxy:
		x.str("mss ")
		x.num(o.get("mss"))
		x.str("; wscale ")
		x.num(o.get("wscale"))
		x.words(o.get("flags"), "; ", " ")
	case nft.ObjectCTHelper:
		x.str("type ")
		x.quoted(o.get("type"))
		x.phrase(" protocol", o, "protocol")
	case nft.ObjectCTTimeout:
		x.phrase("protocol", o, "protocol")
	case nft.ObjectCTExpectation:
		x.expectation(o)
	}
	if o.has("l3proto") {
		x.phrase("; l3proto", o, "l3proto")
	}
	if kind == nft.ObjectCTTimeout {
		x.policy(o.get("policy"))
	}
	if x.err != nil {
		r.fail(x.err)
		return
	}
	t.Objects = append(t.Objects, nft.Object{
		Kind: kind, Name: name, Text: strings.TrimSpace(x.b.String()), Comment: o.get("comment").text(),
	})
}

// expectation writes the attributes of a ct expectation.
func (x *writer) expectation(o node) {
	x.phrase("protocol", o, "protocol")
	x.str("; dport ")
	x.num(o.get("dport"))
	x.str("; timeout ")
	x.num(o.get("timeout"))
	// This is the only time of nft's JSON that is in milliseconds.
	x.str("ms; size ")
	x.num(o.get("size"))
}

// policy writes the times of a ct timeout, ordered by the names of the states.
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
