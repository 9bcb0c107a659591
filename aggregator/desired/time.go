package desired

import (
	"time"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// KernelTime returns how long the kernel probably takes for ops of the last Plan, how much of it for
// new sets, and the place that takes most of it. It costs what the ops change. Elements of which only the
// time changes do not count: they bring nothing that was not there.
func (s *State) KernelTime(ops []kernel.Op) (sum, fresh time.Duration, most Place) {
	times := map[part]time.Duration{}
	for _, op := range ops {
		var o part
		t := cost.NewObject()
		switch op := op.(type) {
		case kernel.AddElements:
			set := s.tables[op.Table].set(op.Set.Name)
			elements := op.Elements
			if op.Renew {
				elements = set.unseen(elements)
			}
			if o, t = set, set.table.sets.Walk()+set.additions(elements); set.kernel == nil {
				fresh += t
			}
		case kernel.DeleteElements:
			set := s.tables[op.Table].set(op.Set.Name)
			o, t = set, set.table.sets.Walk()+set.removals(op.Elements)
		case kernel.AddSet:
			set := s.tables[op.Table].set(op.Set.Name)
			o, t = set, set.table.sets.New()
			fresh += t
		case kernel.FlushSet:
			set := s.tables[op.Table].set(op.Name)
			o, t = set, set.flush()
		case kernel.AddRule:
			table := s.tables[op.Table]
			o, t = table.chain(op.Chain), cost.NewRule(op.Rule, table.sets)
		case kernel.DeleteRule:
			o = s.tables[op.Table].chain(op.Chain)
		}
		if c, ok := o.(*chain); ok && times[o] == 0 {
			t += cost.OldRules(len(c.rules) + len(c.merged()))
		}
		if sum += t; o != nil {
			times[o] += t
		}
	}
	var longest time.Duration
	for o, t := range times {
		if t > longest {
			longest, most = t, o.base().at()
		}
	}
	return sum, fresh, most
}

// UpdateTime returns how long the kernel takes for the elements of an update at most: as if it had none
// of a set that the update declares.
func (s *State) UpdateTime(u *Update) (sum time.Duration) {
	for i := range u.Tables {
		tu := &u.Tables[i]
		for j := range tu.PutSets {
			var c cost.Content
			for k := range tu.PutSets[j].Elements {
				c.Grow(tu.PutSets[j].Decl, &tu.PutSets[j].Elements[k], 1)
			}
			sum += c.Whole(tu.PutSets[j].Decl)
		}
		for j := range tu.Elements {
			eu := &tu.Elements[j]
			if o, ok := find[*set](s, tu.Table, setID(eu.Set)); ok && o.exists() {
				c, d := o.content(), o.decl()
				sum += c.Change(d) + time.Duration(len(eu.Remove))*c.Removal(d)
				for k := range eu.Add {
					sum += c.Addition(d, &eu.Add[k])
				}
			}
		}
	}
	return sum
}

// content returns the content of all shares.
func (o *set) content() *cost.Content {
	var c cost.Content
	for _, sh := range o.shares {
		c.Join(&sh.content)
	}
	return &c
}

// additions returns the time to add elements of which the shares have all.
func (o *set) additions(elements []nftset.Element) time.Duration {
	c, d := o.content(), o.decl()
	if o.kernel == nil || o.remade(o.kernel) {
		// Nothing is there before.
		return c.Whole(d)
	}
	t := c.Change(d)
	for i := range elements {
		t += c.Addition(d, &elements[i])
	}
	return t
}

// unseen returns the elements that the kernel did not have, of some that it may have.
func (o *set) unseen(elements []nftset.Element) (out []nftset.Element) {
	for i := range elements {
		if e := &elements[i]; !o.touched[packed.ID(o.decl(), e)].had {
			out = append(out, *e)
		}
	}
	return out
}

// removals returns the time to remove elements that the shares do not have any more.
func (o *set) removals(elements []nftset.Element) time.Duration {
	c, d := o.content(), o.kernel.(*nftset.Set)
	for i := range elements {
		c.Add(d, &elements[i], 1)
	}
	return c.Change(d) + time.Duration(len(elements))*c.Removal(d)
}

// flush returns the time to remove all elements that the kernel has of a set which is deleted.
func (o *set) flush() time.Duration {
	d, c := o.kernel.(*nftset.Set), cost.Content{}
	for _, t := range o.touched {
		if t.had {
			c.Add(d, &t.before, 1)
		}
	}
	return c.Change(d) + c.Flush(d)
}

// LeaveTime returns how long the kernel probably takes to remove what a fragment has in sets that
// others have a share of too, and in maps that lead to chains or objects. All else goes with its set.
// Of a set that several fragments of its publisher share, the largest share counts.
func (s *State) LeaveTime(key Key) (sum time.Duration, most Place) {
	f := s.fragments[key]
	if f == nil {
		return 0, most
	}
	var longest time.Duration
	for _, h := range f.tables {
		for id, sh := range h.shares {
			sh, ok := sh.(*setShare)
			if !ok {
				continue
			}
			o, t := h.table.parts[id].(*set), time.Duration(0)
			switch c := o.content(); {
			case len(o.shares) > 1:
				for _, other := range o.shares {
					if other.fragment.key.Publisher == key.Publisher {
						t = max(t, time.Duration(other.content.Elements)*c.Removal(sh.decl)+c.Change(sh.decl))
					}
				}
			case packed.HasTargets(sh.decl):
				t = c.Flush(sh.decl) + c.Change(sh.decl)
			}
			if sum += t; t > longest {
				longest, most = t, o.at()
			}
		}
	}
	return sum, most
}
