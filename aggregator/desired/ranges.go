package desired

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// ranges is an ordered index of intervals by their IDs: the first key and the last. The IDs are packed
// into chunks, so a change moves the bytes of one chunk at most.
type ranges struct {
	// size is the length of an ID.
	size   int
	chunks []rangeChunk
}

// rangeChunk has up to rangesPerChunk IDs in order. last is the greatest last key.
type rangeChunk struct {
	ids  string
	last string
}

const rangesPerChunk = 128

// at returns an ID of a chunk.
func (r *ranges) at(c, i int) string { return r.chunks[c].ids[i*r.size : (i+1)*r.size] }

// end returns the last key of an ID.
func (r *ranges) end(id string) string { return id[r.size/2:] }

// search returns the place of the first ID that is not less than key, which may be a first key alone.
func (r *ranges) search(key string) (c, i int) {
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

func (r *ranges) len() (n int) {
	for _, chunk := range r.chunks {
		n += len(chunk.ids) / r.size
	}
	return n
}

func (r *ranges) has(id string) bool {
	c, i := r.search(id)
	return c < len(r.chunks) && r.at(c, i) == id
}

// from returns the IDs that are not less than key, in order.
func (r *ranges) from(key string) iter.Seq[string] {
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

// before returns the last ID that is less than key, or "".
func (r *ranges) before(key string) string {
	c, i := r.search(key)
	if i == 0 {
		if c == 0 {
			return ""
		}
		c, i = c-1, len(r.chunks[c-1].ids)/r.size
	}
	return r.at(c, i-1)
}

// covered returns the greatest last key of the IDs that are less than key, or "".
func (r *ranges) covered(key string) (last string) {
	c, i := r.search(key)
	for _, chunk := range r.chunks[:c] {
		last = max(last, chunk.last)
	}
	for i--; i >= 0; i-- {
		last = max(last, r.end(r.at(c, i)))
	}
	return last
}

// overlapping returns the IDs of the intervals that have a key from first to last.
func (r *ranges) overlapping(first, last string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for c, chunk := range r.chunks {
			if chunk.last < first {
				continue
			}
			for i := 0; i*r.size < len(chunk.ids); i++ {
				id := r.at(c, i)
				if id[:r.size/2] > last || r.end(id) >= first && !yield(id) {
					return
				}
			}
		}
	}
}

// insert adds an ID that is not there.
func (r *ranges) insert(id string) {
	c, i := r.search(id)
	if i == 0 && c > 0 {
		c, i = c-1, len(r.chunks[c-1].ids)/r.size
	}
	if len(r.chunks) == 0 {
		r.chunks = append(r.chunks, rangeChunk{})
	}
	chunk := &r.chunks[c]
	chunk.ids = chunk.ids[:i*r.size] + id + chunk.ids[i*r.size:]
	chunk.last = max(chunk.last, strings.Clone(r.end(id)))
	if len(chunk.ids) <= rangesPerChunk*r.size {
		return
	}
	half := rangesPerChunk / 2 * r.size
	if c == len(r.chunks)-1 && i == rangesPerChunk {
		half = rangesPerChunk * r.size // IDs that come in order fill their chunks
	}
	tail := rangeChunk{ids: strings.Clone(chunk.ids[half:])}
	chunk.ids = strings.Clone(chunk.ids[:half])
	r.chunks = slices.Insert(r.chunks, c+1, tail)
	r.measure(c)
	r.measure(c + 1)
}

// remove removes an ID that is there.
func (r *ranges) remove(id string) {
	c, i := r.search(id)
	chunk := &r.chunks[c]
	chunk.ids = chunk.ids[:i*r.size] + chunk.ids[(i+1)*r.size:]
	switch {
	case chunk.ids == "":
		r.chunks = slices.Delete(r.chunks, c, c+1)
	case chunk.last == r.end(id):
		r.measure(c)
	}
}

// measure finds the greatest last key of a chunk.
func (r *ranges) measure(c int) {
	chunk, last := &r.chunks[c], ""
	for i := 0; i*r.size < len(chunk.ids); i++ {
		last = max(last, r.end(r.at(c, i)))
	}
	chunk.last = last
}

// union joins intervals that come in the order of their first keys.
type union []string

// add adds an interval from first to last.
func (u *union) add(first, last string) {
	if n := len(*u); n > 0 {
		before := (*u)[n-1]
		begin, end := before[:len(first)], before[len(first):]
		if end >= first || nftset.Next(end) == first {
			(*u)[n-1] = begin + max(end, last)
			return
		}
	}
	*u = append(*u, first+last)
}

// compareIDs orders IDs as nft sends the elements, the catch-all element last.
func compareIDs(a, b string) int {
	return cmp.Or(count(a == "")-count(b == ""), strings.Compare(a, b))
}
