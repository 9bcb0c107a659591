package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// elementDecoder collects the elements of one set from a dump.
type elementDecoder struct {
	set *set.Set
	// ranges is true where an interval comes as two elements.
	ranges   bool
	elements []set.Element
	// ends are the ends of intervals: the first keys that are not in them.
	ends []string
	// verdicts are those seen so far: thousands of elements share a few.
	verdicts map[string]string
}

func newElementDecoder(set *set.Set) *elementDecoder {
	enc := newElementEncoder(set, true)
	return &elementDecoder{set: set, ranges: enc.ranges, verdicts: map[string]string{}}
}

// reset forgets what was collected.
func (d *elementDecoder) reset() { d.elements, d.ends = d.elements[:0], d.ends[:0] }

// message decodes a NEWSETELEM.
func (d *elementDecoder) message(m reply) error {
	a := attr.NewReader(m.attrs)
	for a.Next() {
		if a.Type() != unix.NFTA_SET_ELEM_LIST_ELEMENTS {
			continue
		}
		list := a.Nested()
		for list.Next() {
			if err := d.element(list.Bytes()); err != nil {
				return err
			}
		}
		if err := list.Err(); err != nil {
			return err
		}
	}
	return a.Err()
}

// element decodes an entry of the list.
func (d *elementDecoder) element(b []byte) error {
	var e set.Element
	var key, keyEnd []byte
	var flags uint32
	a := attr.NewReader(b)
	for a.Next() {
		var err error
		switch a.Type() {
		case unix.NFTA_SET_ELEM_KEY:
			key, err = dataValue(a.Bytes())
		case nftaSetElemKeyEnd:
			keyEnd, err = dataValue(a.Bytes())
		case unix.NFTA_SET_ELEM_DATA:
			e.Data, err = d.data(a.Bytes())
		case unix.NFTA_SET_ELEM_OBJREF:
			e.Data = a.Text()
		case unix.NFTA_SET_ELEM_FLAGS:
			flags = a.Uint32BE()
		case unix.NFTA_SET_ELEM_TIMEOUT:
			e.Timeout = durationOf(a.Uint64BE())
		case unix.NFTA_SET_ELEM_EXPR, nftaSetElemExprs:
			e.State = elementState(a.Type(), a.Bytes())
		case unix.NFTA_SET_ELEM_USERDATA:
			// An element that somebody else wrote may have any userdata.
			if info, err := userdata.ParseElement(a.Bytes()); err == nil {
				e.Comment = info.Comment
			}
		}
		if err != nil {
			return err
		}
	}
	if err := a.Err(); err != nil {
		return err
	}
	want := int(d.set.Key.Len)
	if flags&setElemCatchall == 0 && len(key) != want || keyEnd != nil && len(keyEnd) != want {
		return fmt.Errorf("key of %d bytes in a set with keys of %d: %w", len(key), want, ErrMalformed)
	}
	if flags&setElemIntervalEnd != 0 {
		d.ends = append(d.ends, string(key))
		return nil
	}
	e.Key, e.KeyEnd = string(key), string(keyEnd)
	d.elements = append(d.elements, e)
	return nil
}

// elementState decodes the statements of an element; nothing for those that nft
// 1.0.6 does not have. What is left of a timeout is not read: it is another a moment
// later.
func elementState(typ uint16, value []byte) string {
	if typ == unix.NFTA_SET_ELEM_EXPR {
		words, err := expr.FormatStateful(value)
		if err != nil {
			return ""
		}
		return words
	}
	words, err := decodeStateful(value)
	if err != nil {
		return ""
	}
	return set.NewState(0, words)
}

// dataValue returns the bytes of a key.
func dataValue(b []byte) ([]byte, error) {
	a := attr.NewReader(b)
	for a.Next() {
		if a.Type() == unix.NFTA_DATA_VALUE {
			return a.Bytes(), nil
		}
	}
	return nil, ErrMalformed
}

// data decodes the data of a map's element; verdicts into their packed form.
func (d *elementDecoder) data(b []byte) (string, error) {
	a := attr.NewReader(b)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_DATA_VALUE:
			return string(a.Bytes()), nil
		case unix.NFTA_DATA_VERDICT:
			return d.verdict(a.Bytes())
		}
	}
	return "", ErrMalformed
}

// verdict decodes a verdict.
func (d *elementDecoder) verdict(b []byte) (string, error) {
	if v, ok := d.verdicts[string(b)]; ok {
		return v, nil
	}
	var v []byte
	var chain string
	a := attr.NewReader(b)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_VERDICT_CODE:
			v = a.Bytes()
		case unix.NFTA_VERDICT_CHAIN:
			chain = a.Text()
		}
	}
	if a.Err() != nil || len(v) != 4 {
		return "", ErrMalformed
	}
	packed := string(v) + chain
	d.verdicts[string(b)] = packed
	return packed, nil
}

// dedupe removes elements that came twice and reports whether there were any.
func (d *elementDecoder) dedupe() bool {
	type key struct{ first, last string }
	seen := make(map[key]struct{}, len(d.elements))
	n := len(d.elements)
	d.elements = slices.DeleteFunc(d.elements, func(e set.Element) bool {
		k := key{e.Key, e.KeyEnd}
		_, twice := seen[k]
		seen[k] = struct{}{}
		return twice
	})
	return len(d.elements) < n
}

// finish returns the elements, with the ends of intervals joined to their
// begins.
func (d *elementDecoder) finish() []set.Element {
	if !d.ranges {
		return slices.Clip(d.elements)
	}
	slices.SortFunc(d.elements, func(a, b set.Element) int { return strings.Compare(a.Key, b.Key) })
	slices.SortFunc(d.ends, cmp.Compare[string])
	ends := d.ends
	for i := range d.elements {
		e := &d.elements[i]
		if e.Key == "" {
			continue // the catch-all element
		}
		for len(ends) > 0 && ends[0] <= e.Key {
			ends = ends[1:] // nft(8) writes such an end before the first interval
		}
		next := "" // the key after the interval; empty for none
		if len(ends) > 0 {
			next = ends[0]
		}
		if i+1 < len(d.elements) && (next == "" || d.elements[i+1].Key < next) {
			next = d.elements[i+1].Key // nft(8) leaves out an end where the next interval begins
		}
		e.KeyEnd = keyBefore(next, len(e.Key))
	}
	return slices.Clip(d.elements)
}

// keyBefore returns the key of n bytes before next; the greatest one where
// next is empty.
func keyBefore(next string, n int) string {
	if next == "" {
		return strings.Repeat("\xff", n)
	}
	b := []byte(next)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]--; b[i] != 0xff {
			break
		}
	}
	return string(b)
}
