package merge

// journal undoes changes since the last Accept.
type journal struct {
	undo []func()
	// Origin is the number of changes since Accept or Rollback, the index of the running one.
	Origin int
}

func (j *journal) onUndo(f func()) { j.undo = append(j.undo, f) }

func (j *journal) undoTo(mark int) {
	for i := len(j.undo) - 1; i >= mark; i-- {
		j.undo[i]()
	}
	clear(j.undo[mark:])
	j.undo = j.undo[:mark]
}

func (j *journal) stamp(origin *int) {
	if *origin != j.Origin {
		assign(j, origin, j.Origin)
	}
}

func assign[T any](j *journal, at *T, v T) {
	old := *at
	*at = v
	j.onUndo(func() { *at = old })
}

// do makes a change with write, which also undoes it.
func do[T any](j *journal, write func(T), v, old T) {
	write(v)
	j.onUndo(func() { write(old) })
}

func enter[K comparable, V any](j *journal, m map[K]V, key K, v V, has bool) {
	old, had := m[key]
	j.onUndo(func() { setKey(m, key, old, had) })
	setKey(m, key, v, has)
}

// setKey removes the key if has is false.
func setKey[K comparable, V any](m map[K]V, key K, v V, has bool) {
	if has {
		m[key] = v
	} else {
		delete(m, key)
	}
}

// assignRecorded assigns a value in a Record: of a part, or of a holding if o is nil.
func assignRecorded[T comparable](s *State, o Part, at *T, v T) {
	if *at != v {
		do(&s.journal, func(v T) {
			*at = v
			s.unrecord(o)
		}, v, *at)
	}
}
