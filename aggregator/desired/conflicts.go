package desired

import (
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
)

// maxRecordedWins bounds the recorded keys of a set that fragments disagree on.
// If there are more, none is recorded.
const maxRecordedWins = 4096

// updateConflict updates, after an element has changed, whether fragments
// disagree on it.
func (s *State) updateConflict(o *set, id string) {
	_, was := o.conflicts[id]
	is := o.disagree(id)
	if was || is {
		// Who wins is recorded, and may be somebody else now.
		s.unrecord(o)
	}
	switch {
	case is && !was:
		if o.conflicts == nil {
			o.conflicts = map[string]struct{}{}
		}
		// The ID may be part of a longer text.
		o.conflicts[strings.Clone(id)] = struct{}{}
	case was && !is:
		delete(o.conflicts, id)
	}
}

// disagree reports whether it matters which of several fragments decides on an
// element: their elements differ, or may differ later because a map's data
// changes.
func (o *set) disagree(id string) bool {
	var first *setShare
	for _, sh := range o.shares {
		e, ok := sh.elements.Get(id)
		switch {
		case !ok || sh.fragment.unclaimed:
		case first == nil:
			first = sh
		case sh.decl.Map:
			return true
		default:
			if _, same := first.elements.Same(id, &e); !same {
				return true
			}
		}
	}
	return false
}

// wins returns the keys that a share decides against others, in order. They
// include keys from before a restart whose other fragments may not have come
// back.
func (o *set) wins(sh *setShare) [][]byte {
	var ids []string
	if len(o.conflicts) <= maxRecordedWins {
		for id := range o.conflicts {
			if o.winner(id) == sh {
				ids = append(ids, id)
			}
		}
	}
	if len(sh.won) > 0 && o.awaited() {
		for _, id := range sh.won {
			if sh.elements.Has(string(id)) {
				ids = append(ids, string(id))
			}
		}
	}
	slices.Sort(ids)
	var wins [][]byte
	for _, id := range slices.Compact(ids) {
		wins = append(wins, []byte(id))
	}
	return wins
}

// take moves the elements that a share is recorded to have won from a dumped
// set to the share.
func (sh *setShare) take(dumped *packed.Elements, wins [][]byte) {
	for _, id := range wins {
		if e, ok := dumped.Get(string(id)); ok {
			sh.elements.Put(string(id), &e)
			sh.won = append(sh.won, id)
			dumped.Remove(string(id))
		}
	}
}
