package render

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// object is a chain, set, map or counter. Because content never changes, a change of policies takes
// effect at once with the elements of pods.
type object struct {
	name     string
	identity identity
	// uses counts objects and elements that need this one. It stays declared until Cleanup.
	uses     int
	declared bool
	// The declaring update was rejected, perhaps because of this object.
	rejected bool
	needs    []*object

	// Either content, a *weftv1.Chain, Object or Set, or members is set. verdicts is a map with
	// fixed elements.
	content  proto.Message
	verdicts bool
	members  *members

	// Of a chain's rules, in order. A set or counter has one owner.
	owners []model.PolicyID
}

func (o *object) full() bool {
	if !o.declared || o.members != nil && o.members.missing > 0 {
		return false
	}
	for _, n := range o.needs {
		if !n.full() {
			return false
		}
	}
	return true
}

type objects struct {
	byName  map[string]*object
	created []*object // by the present update; some turn out to be needless
	// fresh are used but undeclared, the first (later) from earlier updates; idle are declared but
	// unused.
	fresh        []*object
	later        int
	idle         map[*object]struct{}
	sent         []*object            // declared, not yet committed
	unsent       map[*object]struct{} // used sets with possible differences from the kernel
	declaredSets int
}

func newObjects() objects {
	return objects{byName: make(map[string]*object), idle: make(map[*object]struct{}), unsent: make(map[*object]struct{})}
}

func (s *objects) intern(id identity, prefix, readable string, create func(name string) *object) *object {
	base := id.name(prefix, readable)
	name := base
	for n := 2; ; n++ {
		o := s.byName[name]
		if o == nil {
			break
		}
		if o.identity == id {
			return o
		}
		suffix := fmt.Sprintf("-%d", n)
		name = base[:min(len(base), maxName-len(suffix))] + suffix
	}
	o := create(name)
	o.name, o.identity = name, id
	s.byName[name] = o
	s.created = append(s.created, o)
	return o
}

func (s *objects) known(o *object) bool { return o != nil && s.byName[o.name] == o }

func (s *objects) use(o *object) {
	if o.uses++; o.uses > 1 {
		return
	}
	for _, n := range o.needs {
		s.use(n)
	}
	if o.members != nil {
		s.unsent[o] = struct{}{}
	}
	if o.declared {
		delete(s.idle, o)
	} else {
		s.fresh = append(s.fresh, o)
	}
}

func (s *objects) release(o *object) {
	if o.uses--; o.uses > 0 {
		return
	}
	for _, n := range o.needs {
		s.release(n)
	}
	delete(s.unsent, o)
	switch {
	case o.rejected:
		// The next snapshot must not have it.
		s.forget(o)
	case o.declared:
		s.idle[o] = struct{}{}
	}
}

// answered applies rejected to all declarations since the last commit.
func (s *objects) answered(rejected bool) {
	for _, o := range s.sent {
		o.rejected = rejected && o.declared
		if o.rejected && o.uses == 0 {
			s.forget(o)
		}
	}
	if !rejected {
		s.sent = nil
	}
}

// setsInStep is the number of sets that nft_set_lookup (net/netfilter/nf_tables_api.c) walks in the
// time for one rule.
const setsInStep = 256

// size estimates the kernel's work, in rules.
func (s *objects) size(o *object) int {
	n, names := 1+len(o.needs), 0
	switch c := o.content.(type) {
	case *weftv1.Chain:
		n += len(c.GetRules())
	case *weftv1.Set:
		n += len(c.GetElements())
	}
	for _, of := range o.needs {
		if of.isSet() {
			names++
		}
	}
	switch {
	case o.members != nil:
		names += 2 // a separate message has its members
		n += min(o.members.missing, manyMembers) / 4
	case o.isSet():
		names++
	}
	return n + names*s.declaredSets/setsInStep
}

func (o *object) isSet() bool {
	_, is := o.content.(*weftv1.Set)
	return is || o.members != nil
}

// The present update's objects come first; unused ones are forgotten.
func (t *table) declareFresh(p *patch, most int) {
	fresh := slices.Concat(t.fresh[t.later:], t.fresh[:t.later])
	t.fresh = nil
	for _, o := range fresh {
		switch {
		case o.uses == 0 && !o.declared:
			t.forgetUnused(o)
		case !t.declare(p, o, &most):
			t.fresh = append(t.fresh, o)
		}
	}
	for _, o := range t.created {
		if o.uses == 0 && !o.declared && o.members == nil {
			t.forget(o)
		}
	}
	t.later, t.created = len(t.fresh), nil
}

// declare reports whether o and its needs are all declared.
func (t *table) declare(p *patch, o *object, most *int) bool {
	if o.declared {
		return true
	}
	for _, n := range o.needs {
		if !t.declare(p, n, most) {
			return false
		}
	}
	if *most <= 0 {
		return false
	}
	*most -= t.size(o)
	o.declared, t.sent = true, append(t.sent, o)
	if o.isSet() {
		t.declaredSets++
	}
	if !t.left.adopt(o) {
		p.declare(o)
	}
	t.work++
	return true
}

// A set of pods stays while the model has it.
func (s *objects) forget(o *object) {
	if o.declared && o.isSet() {
		s.declaredSets--
	}
	o.declared, o.rejected = false, false
	delete(s.idle, o)
	if o.members != nil {
		if o.members.withdraw(); !o.members.gone {
			return
		}
	}
	if s.byName[o.name] == o {
		delete(s.byName, o.name)
	}
}
