package packed

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
)

// table is a hash table of equally long rows without pointers. A row costs its bytes, four for the
// link, and four for a bucket.
//
// The table grows by one bucket (Litwin's linear hashing) and one chunk at a time, so that no
// insertion moves all rows. Rows have numbers without gaps: the last row takes the number of a
// removed one.
type table struct {
	// key and value are lengths in bytes.
	key, value int
	n          int
	seed       maphash.Seed
	// chunks have rowsPerChunk rows each, the last may have fewer.
	chunks [][]byte
	// heads are the first row of each bucket, plus one; 0 is an empty bucket.
	heads []uint32
	// shared chunks are in a view: copy them before a change.
	shared []bool
}

const (
	rowsPerChunk = 1024
	// linkLen is for the next row of the bucket, plus one.
	linkLen = 4
)

func newTable(key, value, n int) table {
	r := table{key: key, value: value, seed: maphash.MakeSeed()}
	if n > 0 {
		r.heads = make([]uint32, n)
		r.chunks = append(make([][]byte, 0, (n+rowsPerChunk-1)/rowsPerChunk), make([]byte, 0, min(n, rowsPerChunk)*r.size()))
	}
	return r
}

func (r *table) size() int { return linkLen + r.key + r.value }

func (r *table) at(i int) []byte {
	from := i % rowsPerChunk * r.size()
	return r.chunks[i/rowsPerChunk][from : from+r.size() : from+r.size()]
}

func (r *table) keyAt(i int) []byte { return r.at(i)[linkLen : linkLen+r.key] }

func (r *table) valueAt(i int) []byte { return r.at(i)[linkLen+r.key:] }

// next returns the row after i in its bucket, plus one; link sets it.
func (r *table) next(i int) uint32 { return binary.NativeEndian.Uint32(r.at(i)) }

func (r *table) link(i int, n uint32) {
	r.unshare(i)
	binary.NativeEndian.PutUint32(r.at(i), n)
}

// share returns the present rows for views, to read by number only.
func (r *table) share() table {
	view := *r
	view.chunks, view.heads = slices.Clone(r.chunks), nil
	r.shared = slices.Repeat([]bool{true}, len(r.chunks))
	return view
}

func (r *table) unshare(i int) {
	chunk := i / rowsPerChunk
	if chunk >= len(r.shared) || !r.shared[chunk] {
		return
	}
	c := r.chunks[chunk]
	r.chunks[chunk] = append(make([]byte, 0, cap(c)), c...)
	r.shared[chunk] = false
}

// bucket returns the number of the key's bucket. The table must have a bucket.
func (r *table) bucket(key []byte) int {
	half := uint64(1) << (bits.Len(uint(len(r.heads))) - 1)
	b := maphash.Bytes(r.seed, key) & (2*half - 1)
	if b >= uint64(len(r.heads)) {
		b &= half - 1
	}
	return int(b) //nolint:gosec // less than len(r.heads)
}

func (r *table) find(key []byte) (int, bool) {
	if r.n == 0 || len(key) != r.key {
		return 0, false
	}
	for i := r.heads[r.bucket(key)]; i != 0; i = r.next(int(i - 1)) {
		if string(r.keyAt(int(i-1))) == string(key) {
			return int(i - 1), true
		}
	}
	return 0, false
}

// insert adds a new key of the table's length. The caller sets its value.
func (r *table) insert(key []byte) int {
	i := r.n
	chunk := i / rowsPerChunk
	if chunk == len(r.chunks) {
		var c []byte
		if chunk > 0 {
			c = make([]byte, 0, rowsPerChunk*r.size())
		}
		r.chunks = append(r.chunks, c)
	}
	r.unshare(i)
	if c := &r.chunks[chunk]; len(*c) < (i%rowsPerChunk+1)*r.size() {
		*c = append(*c, make([]byte, r.size())...)
	}
	r.n++
	if r.n > len(r.heads) {
		r.split()
	}
	copy(r.keyAt(i), key)
	r.push(r.bucket(key), i)
	return i
}

func (r *table) push(bucket, i int) {
	r.link(i, r.heads[bucket])
	r.heads[bucket] = uint32(i + 1) //nolint:gosec // there are not that many elements
}

// split adds a bucket, and divides an earlier one between both.
func (r *table) split() {
	r.heads = append(r.heads, 0)
	last := len(r.heads) - 1
	if last == 0 {
		return
	}
	old := last - 1<<(bits.Len(uint(last))-1)
	i := r.heads[old]
	r.heads[old] = 0
	for i != 0 {
		this := int(i - 1)
		i = r.next(this)
		r.push(r.bucket(r.keyAt(this)), this)
	}
}

// remove gives the last row the number of the removed one, and returns the last row's old number.
func (r *table) remove(i int) (last int) {
	r.replace(i, r.next(i))
	last = r.n - 1
	if i != last {
		r.replace(last, uint32(i+1)) //nolint:gosec // there are not that many elements
		r.unshare(i)
		copy(r.at(i), r.at(last))
	}
	r.n--
	if spare := r.n/rowsPerChunk + 2; len(r.chunks) > spare {
		r.chunks[spare] = nil
		r.chunks = r.chunks[:spare]
		r.shared = r.shared[:min(spare, len(r.shared))]
	}
	if r.n == 0 {
		r.chunks, r.heads, r.shared = nil, nil, nil
	}
	return last
}

// replace redirects the link to row i to by, a row plus one.
func (r *table) replace(i int, by uint32) {
	bucket := r.bucket(r.keyAt(i))
	if int(r.heads[bucket]) == i+1 {
		r.heads[bucket] = by
		return
	}
	for at := r.heads[bucket]; at != 0; at = r.next(int(at - 1)) {
		if int(r.next(int(at-1))) == i+1 {
			r.link(int(at-1), by)
			return
		}
	}
}
