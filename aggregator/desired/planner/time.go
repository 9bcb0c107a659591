package planner

import (
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// KernelTime returns the probable time of the kernel for ops of the last plan, the part for new
// sets, and the most expensive place. Renewed elements that the kernel had do not count. It costs
// the changes.
func KernelTime(s *merge.State, ops []kernel.Op) (sum, fresh time.Duration, most desired.Place) {
	times := map[merge.Part]time.Duration{}
	for _, op := range ops {
		var o merge.Part
		t := cost.NewObject()
		switch op := op.(type) {
		case kernel.AddElements:
			set := s.Tables[op.Table].Set(op.Set.Name)
			elements := op.Elements
			if op.Renew {
				elements = unseen(set, elements)
			}
			if o, t = set, set.Table.Sets.Walk()+additions(set, elements); set.Kernel == nil {
				fresh += t
			}
		case kernel.DeleteElements:
			set := s.Tables[op.Table].Set(op.Set.Name)
			o, t = set, set.Table.Sets.Walk()+removals(set, op.Elements)
		case kernel.AddSet:
			set := s.Tables[op.Table].Set(op.Set.Name)
			o, t = set, set.Table.Sets.New()
			fresh += t
		case kernel.FlushSet:
			set := s.Tables[op.Table].Set(op.Name)
			o, t = set, flush(set)
		case kernel.AddRule:
			table := s.Tables[op.Table]
			o, t = table.Chain(op.Chain), cost.NewRule(op.Rule, table.Sets)
		case kernel.DeleteRule:
			o = s.Tables[op.Table].Chain(op.Chain)
		}
		if c, ok := o.(*merge.Chain); ok && times[o] == 0 {
			t += cost.OldRules(len(c.Rules) + len(c.Merged()))
		}
		if sum += t; o != nil {
			times[o] += t
		}
	}
	var longest time.Duration
	for o, t := range times {
		if t > longest {
			longest, most = t, o.Base().At()
		}
	}
	return sum, fresh, most
}

// UpdateTime returns the longest time of the kernel for an update's elements, as if all its sets
// were new.
func UpdateTime(s *merge.State, u *desired.Update) (sum time.Duration) {
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
			if o, ok := merge.Find[*merge.Set](s, tu.Table, merge.SetID(eu.Set)); ok && o.Exists() {
				c, d := o.Content(), o.Decl()
				sum += c.Change(d) + time.Duration(len(eu.Remove))*c.Removal(d)
				for k := range eu.Add {
					sum += c.Addition(d, &eu.Add[k])
				}
			}
		}
	}
	return sum
}

func additions(o *merge.Set, elements []nftset.Element) time.Duration {
	c, d := o.Content(), o.Decl()
	if o.Kernel == nil || o.Remade(o.Kernel) {
		return c.Whole(d)
	}
	t := c.Change(d)
	for i := range elements {
		t += c.Addition(d, &elements[i])
	}
	return t
}

// unseen returns the elements new to the kernel.
func unseen(o *merge.Set, elements []nftset.Element) (out []nftset.Element) {
	for i := range elements {
		if e := &elements[i]; !o.Touched[packed.ID(o.Decl(), e)].Had {
			out = append(out, *e)
		}
	}
	return out
}

// removals returns the time to remove elements that the shares have lost already.
func removals(o *merge.Set, elements []nftset.Element) time.Duration {
	c, d := o.Content(), o.Kernel.(*nftset.Set)
	for i := range elements {
		c.Add(d, &elements[i], 1)
	}
	return c.Change(d) + time.Duration(len(elements))*c.Removal(d)
}

// flush returns the time to remove the kernel's elements of a deleted set.
func flush(o *merge.Set) time.Duration {
	d, c := o.Kernel.(*nftset.Set), cost.Content{}
	for _, t := range o.Touched {
		if t.Had {
			c.Add(d, &t.Before, 1)
		}
	}
	return c.Change(d) + c.Flush(d)
}

// LeaveTime returns the probable time to remove a fragment from sets with other shares, and from
// maps with targets. Other elements go with their sets. Of a publisher's shares in a set, the
// largest counts.
func LeaveTime(s *merge.State, key desired.Key) (sum time.Duration, most desired.Place) {
	f := s.Fragments[key]
	if f == nil {
		return 0, most
	}
	var longest time.Duration
	for _, h := range f.Tables {
		for id, sh := range h.Shares {
			sh, ok := sh.(*merge.SetShare)
			if !ok {
				continue
			}
			o, t := h.Table.Parts[id].(*merge.Set), time.Duration(0)
			switch c := o.Content(); {
			case len(o.Shares) > 1:
				for _, other := range o.Shares {
					if other.Fragment.Key.Publisher == key.Publisher {
						t = max(t, time.Duration(other.Content.Elements)*c.Removal(sh.Decl)+c.Change(sh.Decl))
					}
				}
			case packed.HasTargets(sh.Decl):
				t = c.Flush(sh.Decl) + c.Change(sh.Decl)
			}
			if sum += t; t > longest {
				longest, most = t, o.At()
			}
		}
	}
	return sum, most
}
