package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

type elementDecoder struct {
	set    *set.Set
	ranges bool
	// live is true if message fails with errLimit after limit elements.
	live     bool
	limit    int
	counted  bool
	elements []set.Element
	// ends are the first keys after intervals.
	ends []string
	// verdicts are packed, by attribute: thousands of elements share a few.
	verdicts map[string]string
}

func newElementDecoder(set *set.Set) *elementDecoder {
	enc := newElementEncoder(set, true)
	return &elementDecoder{set: set, ranges: enc.ranges, verdicts: map[string]string{}}
}

var errLimit = errors.New("too many elements")

func (d *elementDecoder) reset() { d.elements, d.ends = d.elements[:0], d.ends[:0] }

func (d *elementDecoder) message(m reply) error {
	elements, _ := attr.Find(m.attrs, unix.NFTA_SET_ELEM_LIST_ELEMENTS)
	list := elements.Nested()
	for list.Next() {
		if d.counted && !hasCounted(list.Bytes()) {
			continue
		}
		if d.live && len(d.elements) >= d.limit {
			return errLimit
		}
		if err := d.element(list.Bytes()); err != nil {
			return err
		}
	}
	return errors.Join(elements.Err(), list.Err())
}

// hasCounted returns false only for a single counter of 0 packets.
func hasCounted(b []byte) bool {
	statement, ok := attr.Find(b, unix.NFTA_SET_ELEM_EXPR)
	if !ok {
		return true
	}
	data, _ := attr.Find(statement.Bytes(), unix.NFTA_EXPR_DATA)
	packets, ok := attr.Find(data.Bytes(), unix.NFTA_COUNTER_PACKETS)
	name, _ := attr.Find(statement.Bytes(), unix.NFTA_EXPR_NAME)
	return !ok || !name.TextIs("counter") || packets.Uint64BE() != 0
}

func (d *elementDecoder) element(b []byte) error {
	var e set.Element
	var key, keyEnd []byte
	var flags uint32
	var expires time.Duration
	a := attr.NewReader(b)
	for a.Next() {
		var err error
		switch a.Type() {
		case unix.NFTA_SET_ELEM_KEY:
			key = expr.Data(&a)
		case nftaSetElemKeyEnd:
			keyEnd = expr.Data(&a)
		case unix.NFTA_SET_ELEM_DATA:
			e.Data, err = d.data(a.Nested())
		case unix.NFTA_SET_ELEM_OBJREF:
			e.Data = a.Text()
		case unix.NFTA_SET_ELEM_FLAGS:
			flags = a.Uint32BE()
		case unix.NFTA_SET_ELEM_TIMEOUT:
			err = a.Into(&e.Timeout)
		case unix.NFTA_SET_ELEM_EXPIRATION:
			err = a.Into(&expires)
		case unix.NFTA_SET_ELEM_EXPR:
			e.State = elementState((*statement).ReadAttr, &a)
		case nftaSetElemExprs:
			e.State = elementState((*statements).ReadAttr, &a)
		case unix.NFTA_SET_ELEM_USERDATA:
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
	if expires != 0 {
		e.State = set.NewState(expires, e.Stateful())
	}
	e.Key, e.KeyEnd = string(key), string(keyEnd)
	d.elements = append(d.elements, e)
	return nil
}

// elementState returns "" for statements unknown to nft 1.0.6.
func elementState[T ~[]string](read func(*T, *attr.Reader) error, a *attr.Reader) string {
	var words T
	if err := read(&words, a); err != nil {
		return ""
	}
	return set.NewState(0, words)
}

func (d *elementDecoder) data(a attr.Reader) (string, error) {
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

func (d *elementDecoder) verdict(b []byte) (string, error) {
	if v, ok := d.verdicts[string(b)]; ok {
		return v, nil
	}
	var v []byte
	var chain string
	f := attr.Fields{attr.Always(unix.NFTA_VERDICT_CODE, &v), attr.Always(unix.NFTA_VERDICT_CHAIN, &chain)}
	if f.Read(b) != nil || len(v) != 4 {
		return "", ErrMalformed
	}
	packed := string(v) + chain
	d.verdicts[string(b)] = packed
	return packed, nil
}

func (d *elementDecoder) dedupe() bool {
	type key struct{ first, last string }
	seen := make(map[key]struct{}, len(d.elements))
	n := len(d.elements)
	d.elements = slices.DeleteFunc(d.elements, func(e set.Element) bool {
		k := key{e.Key, e.KeyEnd}
		_, duplicate := seen[k]
		seen[k] = struct{}{}
		return duplicate
	})
	return len(d.elements) < n
}

// finish joins the begins and ends of intervals if the set has ranges.
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
			continue // catch-all
		}
		for len(ends) > 0 && ends[0] <= e.Key {
			ends = ends[1:] // nft(8) adds an end before the first interval
		}
		next := ""
		if len(ends) > 0 {
			next = ends[0]
		}
		if i+1 < len(d.elements) && (next == "" || d.elements[i+1].Key < next) {
			next = d.elements[i+1].Key // nft(8) omits an end at which the next interval begins
		}
		e.KeyEnd = cmp.Or(set.Before(next), strings.Repeat("\xff", len(e.Key)))
	}
	return slices.Clip(d.elements)
}
