package cost

import (
	"cmp"
	"iter"
	"math/bits"
	"runtime"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// Sizes in the kernel in bytes.
const (
	// struct nft_chain with name and rules' blob (nf_tables_chain_alloc_rules); baseChainSize adds
	// struct nft_base_chain and its hook (include/net/netfilter/nf_tables.h)
	chainSize     = 288
	baseChainSize = 1536
	// struct nft_set with name, userdata and private data
	setSize = 768
	// struct nft_object with name and state; struct nft_flowtable with its hash table
	objectSize    = 384
	flowtableSize = 4096
	// ruleSize is struct nft_rule with weft's userdata. The chain's blob also has the rule, as
	// struct nft_rule_dp.
	ruleSize   = 24 + 96
	ruleHeader = 8
	// pointer to operations, and private data
	exprSize = 24
	// struct nft_counter, on every CPU
	counterSize = 16
	// struct nft_limit, struct nf_conncount_data
	stateSize = 64

	// struct nft_set_ext without its data
	extSize = 12
	// struct nft_data
	verdictSize = 16
	timeoutSize = 16

	// two bits for each key of two bytes
	bitmapSize = 1 << 16 * 2 / 8
	// struct hlist_head, or a pointer of a rhashtable
	bucketSize = 8
	// nft_dynset_init
	dynamicSize = 0xffff
)

// Chain returns the memory of a chain without its rules.
func Chain(base bool) int {
	if base {
		return baseChainSize
	}
	return chainSize
}

// Object returns the memory of a named object.
func Object() int { return objectSize + perCPU(counterSize) }

// Flowtable returns the memory of a flowtable.
func Flowtable() int { return flowtableSize }

// Rule returns the memory of a rule with its anonymous sets.
func Rule(r *compile.Rule) int {
	exprs := exprSize * len(r.Exprs)
	n := allocated(ruleSize+len(r.Comment)+exprs) + ruleHeader + exprs
	for _, e := range r.Exprs {
		switch expr.Unwrap(e).(type) {
		case *google.Counter:
			n += perCPU(counterSize)
		case *google.Limit, *google.Connlimit, *google.Quota:
			n += stateSize
		}
	}
	for i := range r.Anonymous {
		a := &r.Anonymous[i]
		var c Content
		for j := range a.Elements {
			c.Add(a.Set, &a.Elements[j], 1)
		}
		n += c.Memory(a.Set)
	}
	return n
}

// Content is a set's or map's content.
type Content struct {
	// Extra is the bytes of comments and statements.
	Elements, Extra int
	// rules has the number of prefixes (rules of pipapo.go) for each field of a concatenation of
	// ranges.
	rules    []int
	overlaps overlaps
	joined   int
	// most connections of a "ct count"
	states int
}

// Plain reports whether all elements without comments and statements take the same memory.
func Plain(d *set.Set) bool { return backendOf(d) != pipapo }

// Add adds the element e by times.
func (c *Content) Add(d *set.Set, e *set.Element, by int) {
	c.Grow(d, e, by)
	if first := d.Key.Fields; backendOf(d) == pipapo && len(e.Key) >= int(first[0]) {
		c.overlaps.add(e.Key[:first[0]], cmp.Or(e.KeyEnd, e.Key)[:first[0]], by)
	}
}

// Grow is Add without the overlaps of concatenated ranges.
func (c *Content) Grow(d *set.Set, e *set.Element, by int) {
	c.Elements += by
	c.Options(e.Comment, e.State, by)
	if backendOf(d) != pipapo {
		return
	}
	if c.rules == nil {
		c.rules = make([]int, len(d.Key.Fields))
	}
	for i, n := range prefixes(d, e) {
		c.rules[i] += by * n
	}
}

// Options adds only the comment and statements of an element by times.
func (c *Content) Options(comment, state string, by int) {
	if comment != "" || state != "" {
		c.Extra += by * (len(comment) + len(state))
		c.states = max(c.states, connectionsOf(state))
	}
}

// Join adds the content of o with the same declaration.
func (c *Content) Join(o *Content) {
	c.Elements += o.Elements
	c.Extra += o.Extra
	c.states = max(c.states, o.states)
	if o.rules == nil {
		return
	}
	if c.rules == nil {
		c.rules = make([]int, len(o.rules))
	}
	for i, n := range o.rules {
		c.rules[i] += n
	}
	c.joined += o.matches()
}

func (c *Content) matches() int { return c.joined + c.overlaps.most() }

// Memory returns the memory of a set or map.
func (c *Content) Memory(d *set.Set) int {
	n, most := setSize+len(d.Name)+len(d.UserData), c.Elements
	most = max(most, dynamicElements(d))
	n += most*elementSize(d) + c.Extra
	switch backendOf(d) {
	case bitmap:
		if d.Key.Len == 2 {
			// same allocation as the set
			n += allocated(setSize+bitmapSize) - setSize
		}
	case hash:
		// nft_hash_buckets, rounded_hashtable_size
		n += bucketSize * roundUp(max(most, int(d.Size))*4/3)
	case pipapo:
		// From Linux 6.10 on, a transaction's copy (pipapo_clone) is freed with the transaction.
		n += c.tables(d)
	case rbtree:
	default:
		panic("cost: unknown backend")
	}
	return n
}

func dynamicElements(d *set.Set) int {
	switch {
	case d.Flags&set.FlagEval == 0:
		return 0
	case d.Size == 0:
		return dynamicSize
	default:
		return int(d.Size)
	}
}

type backend int

const (
	hash backend = iota
	bitmap
	rbtree
	pipapo
)

// backendOf follows nft_select_set_ops (net/netfilter/nf_tables_api.c). The two hash tables differ
// too little to matter.
func backendOf(d *set.Set) backend {
	switch {
	case d.Flags&set.FlagInterval != 0 && len(d.Key.Fields) > 1:
		return pipapo
	case d.Flags&set.FlagInterval != 0:
		return rbtree
	case !d.Map && d.Key.Len <= 2 && d.Flags&(set.FlagTimeout|set.FlagEval|set.FlagExpr) == 0 && len(d.Stateful) == 0:
		return bitmap
	default:
		return hash
	}
}

func elementSize(d *set.Set) int {
	n, copies := extSize+int(d.Key.Len), 1
	switch {
	case d.Verdict:
		n += verdictSize
	case d.Object != "":
		n += 8
	case d.Map:
		n += int(d.Data.Len)
	}
	if d.Flags&set.FlagTimeout != 0 {
		n += timeoutSize
	}
	switch backendOf(d) {
	case hash, bitmap:
		n += 16 // hlist_node, list_head
	case rbtree:
		// start and end of an interval (nft_set_rbtree.c)
		n += 40
		copies = 2
	case pipapo:
		n += int(d.Key.Len) + 16
	default:
		panic("cost: unknown backend")
	}
	state := 0
	for range d.Stateful {
		n += exprSize
		state += max(perCPU(counterSize), stateSize)
	}
	return copies*allocated(n) + state
}

func prefixes(d *set.Set, e *set.Element) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		end, at := cmp.Or(e.KeyEnd, e.Key), 0
		for i, length := range d.Key.Fields {
			to := at + int(length)
			if to > len(e.Key) || to > len(end) {
				return // the catch-all element has no rule
			}
			if !yield(i, Prefixes(e.Key[at:to], end[at:to])) {
				return
			}
			at += (int(length) + 3) &^ 3
		}
	}
}

// Prefixes returns the number of prefixes for a range of big-endian numbers of equal length
// (pipapo_expand in nft_set_pipapo.c).
func Prefixes(low, high string) int {
	same := 0
	for same < 8*len(low) && bitOf(low, same) == bitOf(high, same) {
		same++
	}
	if same == 8*len(low) {
		return 1
	}
	// Below the first different bit, the range has the numbers from low on in one half, and up to
	// high in the other. Each half has a prefix for each bit that could differ, and one for the
	// bound.
	half := func(bound string, whole byte) int {
		last := 8 * len(bound)
		for last > same+1 && bitOf(bound, last-1) == whole {
			last--
		}
		n := 1
		for i := same + 1; i < last; i++ {
			if bitOf(bound, i) == whole {
				n++
			}
		}
		return n
	}
	n := half(low, 0) + half(high, 1)
	if n == 2 && allFrom(low, same+1, 0) && allFrom(high, same+1, 1) {
		return 1
	}
	return n
}

func bitOf(s string, i int) byte { return s[i/8] >> (7 - i%8) & 1 }

func allFrom(s string, i int, value byte) bool {
	for ; i < 8*len(s); i++ {
		if bitOf(s, i) != value {
			return false
		}
	}
	return true
}

func perCPU(n int) int { return n * runtime.NumCPU() }

// allocated is the size of the kmalloc object: a power of two, or 96 or 192.
func allocated(n int) int {
	switch {
	case n > 64 && n <= 96:
		return 96
	case n > 128 && n <= 192:
		return 192
	default:
		return roundUp(max(n, 8))
	}
}

func roundUp(n int) int {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len(uint(n-1))
}
