package packed

import (
	"encoding/binary"
	"iter"
)

// Counts counts by equally long keys. Zero counts are removed.
type Counts struct {
	table
	scratch []byte
}

const countLen = 4

// NewCounts returns counts for keys of a length in bytes, with room for n.
func NewCounts(key, n int) Counts { return Counts{table: newTable(key, countLen, n)} }

func (c *Counts) count(i int) int { return int(int32(binary.NativeEndian.Uint32(c.valueAt(i)))) } //nolint:gosec // as it was put in

// Get returns the count of the key a+b.
func (c *Counts) Get(a, b string) int {
	if i, ok := c.find(c.join(a, b)); ok {
		return c.count(i)
	}
	return 0
}

func (c *Counts) Add(a, b string, by int) {
	key := c.join(a, b)
	i, ok := c.find(key)
	if !ok {
		i = c.insert(key)
		binary.NativeEndian.PutUint32(c.valueAt(i), 0)
	}
	n := c.count(i) + by
	if n == 0 {
		c.remove(i)
		return
	}
	binary.NativeEndian.PutUint32(c.valueAt(i), uint32(int32(n))) //nolint:gosec // less than there are elements
}

func (c *Counts) join(a, b string) []byte {
	c.scratch = append(append(c.scratch[:0], a...), b...)
	return c.scratch
}

// All returns the keys with their counts, in no order.
func (c *Counts) All() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for i := range c.n {
			if !yield(string(c.keyAt(i)), c.count(i)) {
				return
			}
		}
	}
}
