package desired

// texts gives numbers to texts that many elements share, and counts their
// users. Its zero value is ready for use.
type texts struct {
	numbers map[string]uint32
	list    []sharedText
	// free are numbers without users.
	free []uint32
}

type sharedText struct {
	text  string
	users int
}

func (t *texts) text(n uint32) string { return t.list[n].text }

// take returns the number of a text and adds a user.
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
			t.list[n].text = text
		} else {
			n = uint32(len(t.list)) //nolint:gosec // there are not that many elements
			t.list = append(t.list, sharedText{text: text})
		}
		t.numbers[text] = n
	}
	t.list[n].users++
	return n
}

// drop removes a user of a number.
func (t *texts) drop(n uint32) {
	this := &t.list[n]
	if this.users--; this.users > 0 {
		return
	}
	delete(t.numbers, this.text)
	this.text = ""
	t.free = append(t.free, n)
}

// bytes returns the length of the texts, counted for each user.
func (t *texts) bytes() int {
	n := 0
	for i := range t.list {
		n += len(t.list[i].text) * t.list[i].users
	}
	return n
}
