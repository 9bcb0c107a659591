package cost

import (
	"slices"
	"time"

	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/set"
)

// Fitted to Linux 6.18.44 on an AMD EPYC (2 CPUs of a VM).
const (
	// elementTime is for an added or removed element; statefulTime and intervalTime are extra.
	elementTime  = 2000 * time.Nanosecond
	statefulTime = 1000 * time.Nanosecond
	intervalTime = 5000 * time.Nanosecond
	// per element of a changed interval set (nft_rbtree_commit)
	scanTime = 200 * time.Nanosecond
	// per element of a bitmap (nft_bitmap_elem_find)
	listTime = 14 * time.Nanosecond
	// copyTime is for a copied KiB of tables of concatenated ranges: all tables once per
	// transaction, and a field's table for each word of rules (pipapo_clone, pipapo_resize).
	copyTime = 150 * time.Nanosecond
	// bitTime is for each bucket where a rule is entered or searched (pipapo_insert,
	// pipapo_get_boundaries), cutTime for each word when a rule is cut (pipapo_drop).
	bitTime = 5 * time.Nanosecond
	cutTime = 3 * time.Nanosecond

	// oldRuleTime is for each rule of a changed chain (nf_tables_commit_chain_prepare), objectTime
	// for a chain, set or object.
	newRuleTime = 4 * time.Microsecond
	newExprTime = 300 * time.Nanosecond
	oldRuleTime = 60 * time.Nanosecond
	objectTime  = 10 * time.Microsecond

	// The kernel walks a table's list of sets for each name (nft_set_lookup). nearTime is for sets
	// in the cache. declaredWalks are for a set (nf_tables_newset, nf_tables_set_alloc_name),
	// anonymousWalks for an anonymous one with its elements and lookup, scanNameTime for each
	// anonymous set when the kernel names another one.
	nearTime       = 5 * time.Nanosecond
	farTime        = 35 * time.Nanosecond
	nearSets       = 1000
	declaredWalks  = 2
	anonymousWalks = 5
	scanNameTime   = 150 * time.Nanosecond
)

// Change returns the time of a transaction that changes a set, without its elements.
func (c *Content) Change(d *set.Set) time.Duration {
	switch backendOf(d) {
	case rbtree:
		return time.Duration(c.Elements) * scanTime
	case pipapo:
		return 2 * copies(c.tables(d))
	default:
		return 0
	}
}

func copies(bytes int) time.Duration { return time.Duration(bytes) * copyTime >> 10 }

// baseTime is independent of other elements.
func baseTime(d *set.Set) time.Duration {
	t := elementTime + time.Duration(len(d.Stateful))*statefulTime
	if backendOf(d) == rbtree {
		t += intervalTime
	}
	return t
}

// Addition returns the time to add an element.
func (c *Content) Addition(d *set.Set, e *set.Element) time.Duration {
	t := baseTime(d) + c.search(d)
	if backendOf(d) == pipapo {
		for i, n := range prefixes(d, e) {
			t += time.Duration(n) * ruleEntry(d.Key.Fields[i], c.rulesOf(i))
		}
	}
	return t
}

func (c *Content) search(d *set.Set) time.Duration {
	switch backendOf(d) {
	case bitmap:
		return time.Duration(c.Elements) * listTime
	case pipapo:
		// both ends
		return 2 * time.Duration(c.matches()*len(d.Key.Fields)) * pipapoMatch
	default:
		return 0
	}
}

func ruleEntry(length uint32, rules int) time.Duration {
	buckets, bytes := tableOf(int(length), rules)
	return copies(bytes/wordRules) + time.Duration(buckets/2)*bitTime
}

// Whole returns the time to fill an empty set in one transaction.
func (c *Content) Whole(d *set.Set) time.Duration {
	t := time.Duration(c.Elements)*(baseTime(d)+c.search(d)/2) + c.Change(d)
	if backendOf(d) == pipapo {
		for i, length := range d.Key.Fields {
			t += time.Duration(c.rulesOf(i)) * ruleEntry(length, c.rulesOf(i)/2)
		}
	}
	return t
}

// Fit returns how many elements, but at least one, can be added in one transaction of a duration.
func (c *Content) Fit(d *set.Set, elements []set.Element, within time.Duration) (n int) {
	run := Content{Elements: c.Elements, rules: slices.Clone(c.rules), joined: c.matches()}
	t := run.Change(d)
	for ; n < len(elements); n++ {
		if t += run.Addition(d, &elements[n]); t > within && n > 0 {
			break
		}
		run.Grow(d, &elements[n], 1)
	}
	return n
}

// Removal returns the longest time to remove an element.
func (c *Content) Removal(d *set.Set) time.Duration {
	t := baseTime(d)
	switch backendOf(d) {
	case bitmap:
		// measured
		t += 4 * c.search(d)
	case pipapo:
		// The first element moves all rules after it; the last one is found after all others.
		buckets, _ := tableOf(int(d.Key.Fields[0]), c.rulesOf(0))
		t += max(c.cut(d), time.Duration(c.Elements*buckets)*bitTime)
	}
	return t
}

func (c *Content) cut(d *set.Set) (t time.Duration) {
	for i, length := range d.Key.Fields {
		_, bytes := tableOf(int(length), c.rulesOf(i))
		t += time.Duration(c.rulesOf(i)/max(c.Elements, 1)*bytes/bucketBytes) * cutTime
	}
	return t
}

// Flush returns the time to remove all elements.
func (c *Content) Flush(d *set.Set) time.Duration {
	t := c.Removal(d)
	if backendOf(d) == pipapo {
		// each removed element is the first
		t = elementTime + c.cut(d)/2
	}
	return time.Duration(c.Elements) * t
}

// NewRule returns the time to add a rule with its anonymous sets.
func NewRule(r *compile.Rule, sets Sets) time.Duration {
	named, anonymous := time.Duration(len(r.Sets)), time.Duration(len(r.Anonymous))
	t := newRuleTime + time.Duration(len(r.Exprs))*newExprTime + named*sets.Walk() +
		anonymous*(anonymousWalks*sets.Walk()+time.Duration(sets.Anonymous)*scanNameTime)
	for i := range r.Anonymous {
		a, c := &r.Anonymous[i], Content{}
		for j := range a.Elements {
			c.Grow(a.Set, &a.Elements[j], 1)
		}
		t += objectTime + c.Whole(a.Set)
	}
	return t
}

// OldRules returns the time for n rules of a changed chain.
func OldRules(n int) time.Duration { return time.Duration(n) * oldRuleTime }

// NewObject returns the time to add or remove a chain, set, table or object.
func NewObject() time.Duration { return objectTime }

// Sets is the number of sets and maps of a table.
type Sets struct{ Named, Anonymous int }

// New returns the time to add a set without its content.
func (s Sets) New() time.Duration { return objectTime + declaredWalks*s.Walk() }

// Walk returns the time to find a set by name.
func (s Sets) Walk() time.Duration {
	n := s.Named + s.Anonymous
	return time.Duration(min(n, nearSets))*nearTime + time.Duration(max(n-nearSets, 0))*farTime
}
