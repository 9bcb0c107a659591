package intervals

import (
	"iter"
	"slices"
	"sort"
	"strings"
)

// Index packs ordered IDs into chunks; a change copies at most one.
type Index struct {
	size   int
	chunks []chunk
}

// ids are in order; last is their greatest last key.
type chunk struct {
	ids  string
	last string
}

const perChunk = 128

// New returns an Index for keys of n bytes.
func New(n int) *Index { return &Index{size: 2 * n} }

// IDLen returns the bytes of an ID.
func (r *Index) IDLen() int { return r.size }

func (r *Index) at(c, i int) string { return r.chunks[c].ids[i*r.size : (i+1)*r.size] }

func (r *Index) end(id string) string { return id[r.size/2:] }

// search returns the place of the first ID not less than key, which may be a first key alone.
func (r *Index) search(key string) (c, i int) {
	c = max(sort.Search(len(r.chunks), func(c int) bool { return r.at(c, 0) >= key })-1, 0)
	if c == len(r.chunks) {
		return c, 0
	}
	n := len(r.chunks[c].ids) / r.size
	if i = sort.Search(n, func(i int) bool { return r.at(c, i) >= key }); i == n {
		return c + 1, 0
	}
	return c, i
}

// Len counts IDs.
func (r *Index) Len() (n int) {
	for _, ch := range r.chunks {
		n += len(ch.ids) / r.size
	}
	return n
}

// Has finds an ID.
func (r *Index) Has(id string) bool {
	c, i := r.search(id)
	return c < len(r.chunks) && r.at(c, i) == id
}

// From returns the IDs from key on, in order.
func (r *Index) From(key string) iter.Seq[string] {
	return func(yield func(string) bool) {
		c, i := r.search(key)
		for ; c < len(r.chunks); c, i = c+1, 0 {
			for ; i*r.size < len(r.chunks[c].ids); i++ {
				if !yield(r.at(c, i)) {
					return
				}
			}
		}
	}
}

// Before returns the last ID before key, or "".
func (r *Index) Before(key string) string {
	c, i := r.search(key)
	if i == 0 {
		if c == 0 {
			return ""
		}
		c, i = c-1, len(r.chunks[c-1].ids)/r.size
	}
	return r.at(c, i-1)
}

// Covered returns the greatest last key of the IDs before key, or "".
func (r *Index) Covered(key string) (last string) {
	c, i := r.search(key)
	for _, ch := range r.chunks[:c] {
		last = max(last, ch.last)
	}
	for i--; i >= 0; i-- {
		last = max(last, r.end(r.at(c, i)))
	}
	return last
}

// Overlapping returns the intervals with a key from first to last.
func (r *Index) Overlapping(first, last string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for c, ch := range r.chunks {
			if ch.last < first {
				continue
			}
			for i := 0; i*r.size < len(ch.ids); i++ {
				id := r.at(c, i)
				if id[:r.size/2] > last || r.end(id) >= first && !yield(id) {
					return
				}
			}
		}
	}
}

// Insert adds a new ID.
func (r *Index) Insert(id string) {
	c, i := r.search(id)
	if i == 0 && c > 0 {
		c, i = c-1, len(r.chunks[c-1].ids)/r.size
	}
	if len(r.chunks) == 0 {
		r.chunks = append(r.chunks, chunk{})
	}
	ch := &r.chunks[c]
	ch.ids = ch.ids[:i*r.size] + id + ch.ids[i*r.size:]
	ch.last = max(ch.last, strings.Clone(r.end(id)))
	if len(ch.ids) <= perChunk*r.size {
		return
	}
	half := perChunk / 2 * r.size
	if c == len(r.chunks)-1 && i == perChunk {
		half = perChunk * r.size // IDs that come in order fill their chunks
	}
	tail := chunk{ids: strings.Clone(ch.ids[half:])}
	ch.ids = strings.Clone(ch.ids[:half])
	r.chunks = slices.Insert(r.chunks, c+1, tail)
	r.measure(c)
	r.measure(c + 1)
}

// Remove removes an existing ID.
func (r *Index) Remove(id string) {
	c, i := r.search(id)
	ch := &r.chunks[c]
	ch.ids = ch.ids[:i*r.size] + ch.ids[(i+1)*r.size:]
	switch {
	case ch.ids == "":
		r.chunks = slices.Delete(r.chunks, c, c+1)
	case ch.last == r.end(id):
		r.measure(c)
	}
}

func (r *Index) measure(c int) {
	ch, last := &r.chunks[c], ""
	for i := 0; i*r.size < len(ch.ids); i++ {
		last = max(last, r.end(r.at(c, i)))
	}
	ch.last = last
}
