package packed

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// Elements are a share's packed elements, by ID.
type Elements struct {
	Shape
	// The key of a row is the ID, its value the data, or with targets the number of a text.
	table
	// targets has the few texts that elements lead to.
	targets texts
	// extras has options by row.
	extras extras
	// odd elements do not fit the shape: the catch-all element, elements of other programs without
	// data, or packed for another declaration.
	odd map[string]nftset.Element
}

// Shape is the layout of a row.
type Shape struct {
	// Lengths are in bytes. dataLen is 0 in sets and in maps with targets (leads).
	keyLen, idLen, dataLen int
	leads                  bool
}

const wordLen = 4

func ShapeOf(d *nftset.Set) Shape {
	s := Shape{keyLen: int(d.Key.Len), idLen: int(d.Key.Len), leads: HasTargets(d)}
	if d.Flags&nftset.FlagInterval != 0 {
		s.idLen *= 2
	}
	if d.Map && !s.leads {
		s.dataLen = int(d.Data.Len)
	}
	return s
}

// fits reports whether an element has the shape, as results of nft/set.Set.Pack have.
func (s Shape) fits(id string, e *nftset.Element) bool {
	end := e.KeyEnd == "" || s.idLen > s.keyLen && len(e.KeyEnd) == s.keyLen
	return len(id) == s.idLen && len(e.Key) == s.keyLen && end && (s.leads || len(e.Data) == s.dataLen)
}

// New makes room for n elements of a declaration.
func New(d *nftset.Set, n int) *Elements {
	s := ShapeOf(d)
	value := s.dataLen
	if s.leads {
		value = wordLen
	}
	return &Elements{Shape: s, table: newTable(s.idLen, value, n)}
}

func (el *Elements) Len() int { return el.n + len(el.odd) }

func (el *Elements) Has(id string) bool {
	if _, ok := el.find([]byte(id)); ok {
		return true
	}
	_, ok := el.odd[id]
	return ok
}

func (el *Elements) Get(id string) (nftset.Element, bool) {
	i, ok := el.find([]byte(id))
	if !ok {
		e, ok := el.odd[id]
		return e, ok
	}
	return el.element(i, string(el.at(i)[linkLen:])), true
}

// text is the row after the link.
func (el *Elements) element(i int, text string) nftset.Element {
	e := nftset.Element{Key: text[:el.keyLen], KeyEnd: text[el.keyLen:el.idLen], Data: text[el.idLen:]}
	if el.leads {
		e.Data = el.targets.text(el.word(i))
	}
	if el.extras.n > 0 {
		x := el.extras.get(i)
		e.Timeout, e.Comment, e.State = x.timeout, x.comment, x.state
	}
	return e
}

func (el *Elements) word(i int) uint32 { return binary.NativeEndian.Uint32(el.valueAt(i)) }

// Same reports whether an element exists, and is equal.
func (el *Elements) Same(id string, e *nftset.Element) (had, same bool) {
	i, ok := el.find([]byte(id))
	if !ok {
		odd, ok := el.odd[id]
		return ok, odd == *e
	}
	return true, el.dataIs(i, e.Data) && el.extras.get(i) == optionsOf(e)
}

func (el *Elements) dataIs(i int, data string) bool {
	if el.leads {
		return el.targets.text(el.word(i)) == data
	}
	return string(el.valueAt(i)) == data
}

// Differs reports whether both have an ID, with different data.
func (el *Elements) Differs(other *Elements, id string) bool {
	a, ok := el.Get(id)
	if !ok {
		return false
	}
	b, ok := other.Get(id)
	return ok && a.Data != b.Data
}

func (el *Elements) Put(id string, e *nftset.Element) {
	if !el.fits(id, e) {
		el.Remove(id)
		if el.odd == nil {
			el.odd = map[string]nftset.Element{}
		}
		el.odd[id] = *e
		return
	}
	delete(el.odd, id)
	i, had := el.find([]byte(id))
	if !had {
		i = el.insert([]byte(id))
	}
	el.unshare(i)
	if el.leads {
		word := el.targets.take(e.Data)
		if had {
			el.targets.drop(el.word(i))
		}
		binary.NativeEndian.PutUint32(el.valueAt(i), word)
	} else {
		copy(el.valueAt(i), e.Data)
	}
	el.extras.set(i, optionsOf(e))
}

func (el *Elements) Remove(id string) {
	i, ok := el.find([]byte(id))
	if !ok {
		delete(el.odd, id)
		return
	}
	if el.leads {
		el.targets.drop(el.word(i))
	}
	last := el.table.remove(i)
	if el.extras.n == 0 {
		return
	}
	el.extras.set(i, el.extras.get(last))
	el.extras.set(last, options{})
}

// All returns the elements by ID, in no order. They must not change meanwhile.
func (el *Elements) All() iter.Seq2[string, nftset.Element] {
	return func(yield func(string, nftset.Element) bool) {
		size := el.size()
		for first := 0; first < el.n; first += rowsPerChunk {
			n := min(el.n-first, rowsPerChunk)
			// One string for a chunk needs one allocation.
			text := string(el.chunks[first/rowsPerChunk][:n*size])
			for i := range n {
				record := text[i*size+linkLen : (i+1)*size]
				if !yield(record[:el.idLen], el.element(first+i, record)) {
					return
				}
			}
		}
		for id, e := range el.odd {
			if !yield(id, e) {
				return
			}
		}
	}
}

func (el *Elements) IDs() []string {
	ids := make([]string, 0, el.Len())
	for id := range el.All() {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, CompareIDs)
	return ids
}

// Bytes returns the size of the elements for Usage.
func (el *Elements) Bytes() int {
	n := el.n*(el.idLen+el.dataLen) + el.targets.bytes()
	for comment, state := range el.Texts() {
		n += len(comment) + len(state)
	}
	for id, e := range el.odd {
		n += len(id) + len(e.Data)
	}
	return n
}

// Texts returns comments and statements of elements with options, and of odd ones.
func (el *Elements) Texts() iter.Seq2[string, string] {
	return func(yield func(comment, state string) bool) {
		for _, page := range el.extras.pages {
			for _, x := range page {
				if !yield(x.comment, x.state) {
					return
				}
			}
		}
		for _, e := range el.odd {
			if !yield(e.Comment, e.State) {
				return
			}
		}
	}
}

// Bytes returns the size of an element for Usage.
func Bytes(id string, e *nftset.Element) int {
	return len(id) + len(e.Data) + len(e.Comment) + len(e.State)
}

// CompareIDs orders IDs as nft sends the elements, the catch-all element last.
func CompareIDs(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a))
	}
	return strings.Compare(a, b)
}
