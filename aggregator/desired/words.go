package desired

// words gives numbers to texts that many elements have in common, and counts who
// has them. Its zero value is ready for use.
type words struct {
	numbers map[string]uint32
	words   []word
	// free are numbers that nobody has.
	free []uint32
}

type word struct {
	text  string
	users int
}

func (w *words) text(n uint32) string { return w.words[n].text }

// take returns the number of a text for one more user.
func (w *words) take(text string) uint32 {
	n, ok := w.numbers[text]
	if !ok {
		if w.numbers == nil {
			w.numbers = map[string]uint32{}
		}
		// The text may be part of a longer one.
		text = string([]byte(text))
		if last := len(w.free) - 1; last >= 0 {
			n, w.free = w.free[last], w.free[:last]
			w.words[n].text = text
		} else {
			n = uint32(len(w.words)) //nolint:gosec // there are not that many elements
			w.words = append(w.words, word{text: text})
		}
		w.numbers[text] = n
	}
	w.words[n].users++
	return n
}

// drop ends one user's use of a number.
func (w *words) drop(n uint32) {
	this := &w.words[n]
	if this.users--; this.users > 0 {
		return
	}
	delete(w.numbers, this.text)
	this.text = ""
	w.free = append(w.free, n)
}

// bytes is the length of the texts, counted for each user.
func (w *words) bytes() int {
	n := 0
	for i := range w.words {
		n += len(w.words[i].text) * w.words[i].users
	}
	return n
}
