package eval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
)

// Ruleset holds all tables of a network namespace.
type Ruleset struct {
	// In order of creation: of base chains with the same priority the last one runs first.
	Tables []Table
}

// Table is a compiled table.
type Table struct {
	ID nft.TableID
	// weft is known to have made the table
	Ours bool
	// base chains are detached from their hooks
	Dormant bool
	Chains  []Chain
	// named, and from the kernel also anonymous
	Sets []Set
}

// Chain has ordered rules.
type Chain struct {
	Decl *object.Chain
	// publisher, as in Rule; may be empty if the rules have owners
	Owner string
	Rules []Rule
	// replaces Rules if not nil; always the same rules
	Load func() ([]Rule, error)
}

// Rule is a compiled rule, see compile.Rule.
type Rule struct {
	// unique in the table, not 0
	Handle uint64
	// without the comment, or empty if only Words knows it
	Text string
	// if not nil; "" if the expressions have no text
	Words   func() string
	Comment string
	// empty for a rule of another program
	Owner     string
	Exprs     []expr.Expr
	Anonymous []Set
}

// HandleWord begins the String of a rule without text.
const HandleWord = "handle "

// String returns the text, or else the handle.
func (r *Rule) String() string {
	text := r.Text
	if text == "" && r.Words != nil {
		text = r.Words()
	}
	return cmp.Or(text, fmt.Sprint(HandleWord, r.Handle))
}

func (t *Table) chain(name string) *Chain {
	i := slices.IndexFunc(t.Chains, func(c Chain) bool { return c.Decl.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Chains[i]
}

// Set returns anonymous set id of a rule, counted from 1, or the named set if id is 0.
func (t *Table) Set(r *Rule, id uint32, name string) (s Set, ok bool) {
	if id > 0 {
		if int(id) > len(r.Anonymous) {
			return Set{}, false
		}
		return r.Anonymous[id-1], true
	}
	i := slices.IndexFunc(t.Sets, func(s Set) bool { return s.Decl.Name == name })
	if i < 0 {
		return Set{}, false
	}
	return t.Sets[i], true
}

// BaseChain is a base chain with its table.
type BaseChain struct {
	Table *Table
	Chain *Chain
	Base  *object.Base
}

func (b *BaseChain) isNAT() bool { return b.Base.Type == "nat" }

// BaseChains returns the base chains of a family at a hook (NF_INET_*), in order.
func (r *Ruleset) BaseChains(family nft.Family, hook uint32) []BaseChain {
	var filters, nat []BaseChain
	translation := natPriority(hook)
	natAt := -1
	for i := range r.Tables {
		t := &r.Tables[i]
		if t.Dormant || t.ID.Family != family && (t.ID.Family != nft.FamilyInet || family == nft.FamilyBridge) {
			continue
		}
		for j := range t.Chains {
			c := &t.Chains[j]
			switch base := c.Decl.Base; {
			case base == nil || base.Hook != hook:
			case base.Type == "nat":
				if natAt < 0 {
					natAt = len(filters)
				}
				nat = append(nat, BaseChain{t, c, base})
			default:
				filters = append(filters, BaseChain{t, c, base})
			}
		}
	}
	// the last of an equal priority runs first
	byPriority := func(a, b BaseChain) int { return cmp.Compare(a.Base.Priority, b.Base.Priority) }
	at := slices.Clone(filters[max(natAt, 0):])
	slices.Reverse(filters)
	slices.SortStableFunc(filters, byPriority)
	slices.Reverse(nat)
	slices.SortStableFunc(nat, byPriority)
	// the kernel has one hook for all nat chains
	place := slices.IndexFunc(filters, func(b BaseChain) bool {
		later := slices.ContainsFunc(at, func(x BaseChain) bool { return x.Chain == b.Chain })
		return b.Base.Priority > translation || b.Base.Priority == translation && !later
	})
	if place < 0 {
		place = len(filters)
	}
	return slices.Insert(filters, place, nat...)
}

func natPriority(hook uint32) int32 {
	if hook == hookInput || hook == hookPostrouting {
		return srcNAT
	}
	return dstNAT
}

// enum nf_ip_hook_priorities
const (
	conntrackPriority = -200
	dstNAT            = -100
	srcNAT            = 100
)

// enum nf_inet_hooks
const (
	hookPrerouting = iota
	hookInput
	hookForward
	hookOutput
	hookPostrouting
)
