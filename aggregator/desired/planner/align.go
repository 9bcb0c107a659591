package planner

import (
	"slices"
	"sort"

	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/nft/userdata"
)

// ruleID is the identity of a rule: a kernel rule can stay for a wanted one with an equal ruleID.
type ruleID struct {
	fingerprint userdata.Fingerprint
	owner       string
}

func idOf(r *merge.Slot) ruleID { return ruleID{r.Rule.Fingerprint, r.Owner} }

// align pairs the kernel's rules with the wanted ones in order, as many as it can. match has for
// each returned rule the index in before that stays, or -1. Rules that keep rejects do not stay.
//
// Adopted rules cannot be added. So they are paired first, the wanted rules follow the kernel's
// order, and missing adopted rules are left out.
func align(before, after []*merge.Slot, keep func(*merge.Slot) bool) ([]*merge.Slot, []int) {
	after, anchors := keepAdopted(before, after)
	match := make([]int, len(after))
	b, a := 0, 0
	for _, x := range anchors {
		alignSegment(before, after, match, span{b, x.before, a, x.after}, keep)
		match[x.after] = x.before
		b, a = x.before+1, x.after+1
	}
	alignSegment(before, after, match, span{b, len(before), a, len(after)}, keep)
	return after, match
}

func keepAdopted(before, after []*merge.Slot) ([]*merge.Slot, []pair) {
	adopted := func(r *merge.Slot) bool { return r.Adopted }
	if !slices.ContainsFunc(after, adopted) {
		return after, nil
	}
	place := map[*merge.Slot]int{}
	for i, r := range before {
		if r.Adopted {
			place[r] = i
		}
	}
	var stay []*merge.Slot
	wanted := make([]*merge.Slot, 0, len(after))
	for _, r := range after {
		if _, ok := place[r]; r.Adopted && !ok {
			continue
		}
		if r.Adopted {
			stay = append(stay, r)
		}
		wanted = append(wanted, r)
	}
	slices.SortFunc(stay, func(x, y *merge.Slot) int { return place[x] - place[y] })
	anchors := make([]pair, 0, len(stay))
	for i, r := range wanted {
		if r.Adopted {
			wanted[i] = stay[len(anchors)]
			anchors = append(anchors, pair{place[wanted[i]], i})
		}
	}
	return wanted, anchors
}

type span struct{ b0, b1, a0, a1 int }

func alignSegment(before, after []*merge.Slot, match []int, s span, keep func(*merge.Slot) bool) {
	same := func(b, a int) bool {
		return idOf(before[b]) == idOf(after[a]) && keep(before[b]) && keep(after[a])
	}
	for s.b0 < s.b1 && s.a0 < s.a1 && same(s.b0, s.a0) {
		match[s.a0] = s.b0
		s.b0++
		s.a0++
	}
	for s.b0 < s.b1 && s.a0 < s.a1 && same(s.b1-1, s.a1-1) {
		s.b1--
		s.a1--
		match[s.a1] = s.b1
	}
	for i := s.a0; i < s.a1; i++ {
		match[i] = -1
	}
	if s.b0 == s.b1 || s.a0 == s.a1 {
		return
	}
	places := map[ruleID][]int{}
	for i := s.b0; i < s.b1; i++ {
		if keep(before[i]) {
			places[idOf(before[i])] = append(places[idOf(before[i])], i)
		}
	}
	longest(candidates(after, s, places, keep), match)
}

// pair has a kernel rule that could stay in the place of a wanted one.
type pair struct{ before, after int }

// maxPairs bounds the work of equal rules: beyond, the first is only paired with the first, the
// second with the second, and so on.
const maxPairs = 1 << 20

// candidates are by after and then falling before: an increasing sequence takes each wanted rule
// once.
func candidates(after []*merge.Slot, s span, places map[ruleID][]int, keep func(*merge.Slot) bool) []pair {
	total := 0
	for i := s.a0; i < s.a1; i++ {
		total += len(places[idOf(after[i])])
	}
	pairs := make([]pair, 0, min(total, maxPairs))
	nth := map[ruleID]int{}
	for i := s.a0; i < s.a1; i++ {
		if !keep(after[i]) {
			continue
		}
		id := idOf(after[i])
		at := places[id]
		if total > maxPairs {
			if n := nth[id]; n < len(at) {
				pairs = append(pairs, pair{at[n], i})
			}
			nth[id]++
			continue
		}
		for _, b := range slices.Backward(at) {
			pairs = append(pairs, pair{b, i})
		}
	}
	return pairs
}

// longest marks the longest common subsequence, by the method of Hunt and Szymanski.
func longest(pairs []pair, match []int) {
	// tails[n] is the pair with the smallest end of a sequence of length n+1.
	var tails []int
	prev := make([]int, len(pairs))
	for i, x := range pairs {
		n := sort.Search(len(tails), func(k int) bool { return pairs[tails[k]].before >= x.before })
		prev[i] = -1
		if n > 0 {
			prev[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	if len(tails) == 0 {
		return
	}
	for i := tails[len(tails)-1]; i >= 0; i = prev[i] {
		match[pairs[i].after] = pairs[i].before
	}
}
