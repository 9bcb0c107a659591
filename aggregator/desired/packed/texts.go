package packed

import (
	"slices"
)

// texts numbers the texts that many elements share, and counts the elements of each. Its zero value
// is ready for use.
type texts struct {
	numbers map[string]uint32
	list    []string
	users   []int
	free    []uint32
	// shared is the length of list in a view: copy list before these texts change.
	shared int
}

func (t *texts) text(n uint32) string { return t.list[n] }

// share returns the present texts for views.
func (t *texts) share() texts {
	t.shared = len(t.list)
	return texts{list: t.list[:len(t.list):len(t.list)]}
}

func (t *texts) set(n uint32, text string) {
	if int(n) < t.shared {
		t.list, t.shared = slices.Clone(t.list), 0
	}
	t.list[n] = text
}

func (t *texts) take(text string) uint32 {
	n, ok := t.numbers[text]
	if !ok {
		if t.numbers == nil {
			t.numbers = map[string]uint32{}
		}
		// The text may be part of a longer one.
		text = string([]byte(text))
		if last := len(t.free) - 1; last >= 0 {
			n, t.free = t.free[last], t.free[:last]
			t.set(n, text)
		} else {
			n = uint32(len(t.list)) //nolint:gosec // there are not that many elements
			t.list, t.users = append(t.list, text), append(t.users, 0)
		}
		t.numbers[text] = n
	}
	t.users[n]++
	return n
}

func (t *texts) drop(n uint32) {
	if t.users[n]--; t.users[n] > 0 {
		return
	}
	delete(t.numbers, t.list[n])
	t.set(n, "")
	t.free = append(t.free, n)
}

// bytes counts each text for each user.
func (t *texts) bytes() int {
	n := 0
	for i, text := range t.list {
		n += len(text) * t.users[i]
	}
	return n
}
