package desired

import (
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// elements are the elements of one share of a set, by their IDs. They are
// packed: an Element is made when it is asked for, and the Elements that were
// put in are not kept.
type elements struct {
	shape
	// records have the ID as their key, and as their value the data, or in maps that
	// lead to chains and objects the number of a word.
	records
	// targets has the data of a map that leads to chains or objects: texts of
	// different lengths, of which there are few.
	targets texts
	// extras has the options of elements by the number of their record. Most
	// elements have none.
	extras extras
	// odd has the elements that cannot be packed: elements that other programs
	// have put into the kernel without a key or data, and elements that were
	// packed for another declaration.
	odd map[string]nftset.Element
}

// shape decides how elements are packed.
type shape struct {
	// keyLen is the length of a key, idLen that of an ID, dataLen that of the data;
	// 0 in sets and in maps that lead to chains or objects.
	keyLen, idLen, dataLen int
	leads                  bool
}

// options are the parts of an element that are stored beside its record.
type options struct {
	timeout time.Duration
	comment string
	state   string
}

func optionsOf(e *nftset.Element) options {
	return options{timeout: e.Timeout, comment: e.Comment, state: e.State}
}

// wordLen is the length of a word's number.
const wordLen = 4

func shapeOf(d *nftset.Set) shape {
	s := shape{keyLen: int(d.Key.Len), idLen: int(d.Key.Len), leads: hasTargets(d)}
	if d.Flags&nftset.FlagInterval != 0 {
		s.idLen *= 2
	}
	if d.Map && !s.leads {
		s.dataLen = int(d.Data.Len)
	}
	return s
}

// fits reports whether an element can be packed: what compile.Set.Pack returns can.
func (s shape) fits(id string, e *nftset.Element) bool {
	end := e.KeyEnd == "" || s.idLen > s.keyLen && len(e.KeyEnd) == s.keyLen
	return len(id) == s.idLen && len(e.Key) == s.keyLen && end && (s.leads || len(e.Data) == s.dataLen)
}

// newElements makes room for n elements of a declaration.
func newElements(d *nftset.Set, n int) *elements {
	s := shapeOf(d)
	value := s.dataLen
	if s.leads {
		value = wordLen
	}
	return &elements{shape: s, records: newRecords(s.idLen, value, n)}
}

func (el *elements) len() int { return el.n + len(el.odd) }

func (el *elements) has(id string) bool {
	if _, ok := el.find([]byte(id)); ok {
		return true
	}
	_, ok := el.odd[id]
	return ok
}

// get returns the element with an ID.
func (el *elements) get(id string) (nftset.Element, bool) {
	i, ok := el.find([]byte(id))
	if !ok {
		e, ok := el.odd[id]
		return e, ok
	}
	return el.element(i, string(el.at(i)[linkLen:])), true
}

// element makes an element of a record, whose text is that without the link.
func (el *elements) element(i int, text string) nftset.Element {
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

// word is the number of the data of a record of a map that leads somewhere.
func (el *elements) word(i int) uint32 { return binary.NativeEndian.Uint32(el.valueAt(i)) }

// same reports whether an element is there, and whether it is equal.
func (el *elements) same(id string, e *nftset.Element) (had, same bool) {
	i, ok := el.find([]byte(id))
	if !ok {
		odd, ok := el.odd[id]
		return ok, odd == *e
	}
	return true, el.dataIs(i, e.Data) && el.extras.get(i) == optionsOf(e)
}

func (el *elements) dataIs(i int, data string) bool {
	if el.leads {
		return el.targets.text(el.word(i)) == data
	}
	return string(el.valueAt(i)) == data
}

// differs reports whether both have an ID, with other data.
func (el *elements) differs(other *elements, id string) bool {
	a, ok := el.get(id)
	if !ok {
		return false
	}
	b, ok := other.get(id)
	return ok && a.Data != b.Data
}

// put adds an element, or replaces the one with its ID.
func (el *elements) put(id string, e *nftset.Element) {
	if !el.fits(id, e) {
		el.remove(id)
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

// remove removes the element with an ID, if there is one.
func (el *elements) remove(id string) {
	i, ok := el.find([]byte(id))
	if !ok {
		delete(el.odd, id)
		return
	}
	if el.leads {
		el.targets.drop(el.word(i))
	}
	last := el.records.remove(i)
	if el.extras.n == 0 {
		return
	}
	el.extras.set(i, el.extras.get(last))
	el.extras.set(last, options{})
}

// all returns the elements by their IDs, in no order. The elements must not
// change during the iteration.
func (el *elements) all() iter.Seq2[string, nftset.Element] {
	return func(yield func(string, nftset.Element) bool) {
		size := el.size()
		for first := 0; first < el.n; first += recordsPerChunk {
			n := min(el.n-first, recordsPerChunk)
			// One string for all of a chunk, so that there is one allocation.
			text := string(el.chunks[first/recordsPerChunk][:n*size])
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

// ids returns the IDs in order.
func (el *elements) ids() []string {
	ids := make([]string, 0, el.len())
	for id := range el.all() {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

// bytes returns the size of the elements for Usage.
func (el *elements) bytes() int {
	n := el.n*(el.idLen+el.dataLen) + el.targets.bytes()
	for _, page := range el.extras.pages {
		for _, x := range page {
			n += len(x.comment) + len(x.state)
		}
	}
	for id, e := range el.odd {
		n += elementBytes(id, &e)
	}
	return n
}

// elementBytes returns the size of an element for Usage.
func elementBytes(id string, e *nftset.Element) int {
	return len(id) + len(e.Data) + len(e.Comment) + len(e.State)
}

// extras has the options of elements, by the numbers of their records. Most have none.
// The zero value is ready for use.
type extras struct {
	// pages have the options of recordsPerChunk records each; n counts the options.
	pages []map[int]options
	n     int
	// shared says which pages a view has: they are copied before they change.
	shared []bool
}

// get returns the options of a record.
func (x *extras) get(i int) options {
	if page := i / recordsPerChunk; page < len(x.pages) {
		return x.pages[page][i]
	}
	return options{}
}

// set changes the options of a record.
func (x *extras) set(i int, o options) {
	before := x.get(i)
	if before == o {
		return
	}
	page := i / recordsPerChunk
	if missing := page + 1 - len(x.pages); missing > 0 {
		x.pages = append(x.pages, make([]map[int]options, missing)...)
	}
	if page < len(x.shared) && x.shared[page] {
		x.pages[page], x.shared[page] = maps.Clone(x.pages[page]), false
	}
	x.n += count(o != options{}) - count(before != options{})
	if o == (options{}) {
		delete(x.pages[page], i)
	} else {
		if x.pages[page] == nil {
			x.pages[page] = map[int]options{}
		}
		x.pages[page][i] = o
	}
	if x.n == 0 {
		x.pages, x.shared = nil, nil
	}
}

// share returns the options as they are now, for views.
func (x *extras) share() extras {
	x.shared = slices.Repeat([]bool{true}, len(x.pages))
	return extras{pages: slices.Clone(x.pages), n: x.n}
}

// compareIDs orders IDs as nft sends the elements, the catch-all element last.
func compareIDs(a, b string) int {
	return cmp.Or(count(a == "")-count(b == ""), strings.Compare(a, b))
}
