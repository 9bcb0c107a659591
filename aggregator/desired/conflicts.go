package desired

import (
	"slices"
	"strings"
)

// maxRecordedWins bounds what is recorded of a set that fragments disagree on: where it
// is more, nothing is.
const maxRecordedWins = 4096

// updateConflict notes whether fragments disagree on an element, once it has changed.
func (s *State) updateConflict(o *set, id string) {
	_, was := o.conflicts[id]
	is := o.disagree(id)
	if was || is {
		// Who wins is recorded, and may be somebody else now.
		s.recordedAt++
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
// element: they state it differently, or may come to, as data changes.
func (o *set) disagree(id string) bool {
	var first *setShare
	for _, sh := range o.shares {
		e, ok := sh.elements.get(id)
		switch {
		case !ok || sh.fragment.orphan:
		case first == nil:
			first = sh
		case sh.decl.Map:
			return true
		default:
			if _, same := first.elements.same(id, &e); !same {
				return true
			}
		}
	}
	return false
}

// wins returns the keys that a share decides against others, in order: those
// of now, and those from before a restart whose losers may not have come back.
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
			if sh.elements.has(string(id)) {
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

// take moves the elements that a share is recorded to have won out of a dumped
// set to it.
func (sh *setShare) take(dumped *elements, wins [][]byte) {
	for _, id := range wins {
		if e, ok := dumped.get(string(id)); ok {
			sh.elements.put(string(id), &e)
			sh.won = append(sh.won, id)
			dumped.remove(string(id))
		}
	}
}
