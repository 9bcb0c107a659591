package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// elementEncoder appends the elements of one set. It allocates nothing.
type elementEncoder struct {
	set *set.Set
	// add is false where elements are only named, to delete them.
	add bool
	// ranges is true for sets whose intervals are two elements, the first key
	// and the first key after it; keyEnd for those that carry both ends in one.
	ranges, keyEnd bool
}

func newElementEncoder(set *set.Set, add bool) elementEncoder {
	interval := set.Flags&unix.NFT_SET_INTERVAL != 0
	concat := set.Flags&setConcat != 0
	return elementEncoder{set: set, add: add, ranges: interval && !concat, keyEnd: interval && concat}
}

// append appends an element: one list entry, or two for an interval of a set
// that is no concatenation.
func (ee *elementEncoder) append(b []byte, e *set.Element) ([]byte, error) {
	if err := ee.check(e); err != nil {
		return b, err
	}
	open := false
	if ee.ranges && e.Key != "" {
		open = allOnes(rangeEnd(e))
	}
	b, at := attr.OpenNested(b, unix.NFTA_LIST_ELEM)
	b, err := ee.appendFirst(b, e, open)
	if err != nil {
		return b, err
	}
	b = attr.Close(b, at)
	if !ee.ranges || open || e.Key == "" {
		return b, nil
	}
	return ee.appendEnd(b, rangeEnd(e)), nil
}

// check compares lengths, about which the kernel would only say EINVAL.
func (ee *elementEncoder) check(e *set.Element) error {
	want := int(ee.set.Key.Len)
	if len(e.Key) != want && e.Key != "" {
		return fmt.Errorf("key has %d bytes: want %d", len(e.Key), want)
	}
	if e.KeyEnd != "" && len(e.KeyEnd) != want {
		return fmt.Errorf("end of the key's interval has %d bytes: want %d", len(e.KeyEnd), want)
	}
	if e.KeyEnd != "" && e.KeyEnd != e.Key && !ee.ranges && !ee.keyEnd {
		return errors.New("key is an interval: want a set with flags interval")
	}
	if ee.ranges && e.KeyEnd != "" && e.KeyEnd < e.Key {
		return errors.New("interval ends before it begins")
	}
	if !ee.add {
		return nil
	}
	switch {
	case !ee.set.Map && e.Data != "":
		return errors.New("element has data: want a map")
	case ee.set.Object != "":
		if e.Data == "" {
			return errors.New("element names no object")
		}
	case ee.set.Verdict && len(e.Data) < 4:
		return errors.New("element has no verdict")
	case ee.set.Map && !ee.set.Verdict && len(e.Data) != int(ee.set.Data.Len):
		return fmt.Errorf("data has %d bytes: want %d", len(e.Data), ee.set.Data.Len)
	}
	return nil
}

// appendFirst appends the attributes of an element, or of the begin of an
// interval. An element without a key is the catch-all element "*".
func (ee *elementEncoder) appendFirst(b []byte, e *set.Element, open bool) ([]byte, error) {
	if e.Key == "" {
		b = attr.AppendUint32BE(b, unix.NFTA_SET_ELEM_FLAGS, setElemCatchall)
	} else {
		b = appendValue(b, unix.NFTA_SET_ELEM_KEY, e.Key)
	}
	if ee.keyEnd && e.Key != "" {
		b = appendValue(b, nftaSetElemKeyEnd, rangeEnd(e))
	}
	if !ee.add {
		return b, nil
	}
	switch {
	case ee.set.Object != "":
		b = attr.AppendString(b, unix.NFTA_SET_ELEM_OBJREF, e.Data)
	case ee.set.Verdict:
		b = appendVerdict(b, e.Data)
	case ee.set.Map:
		b = appendValue(b, unix.NFTA_SET_ELEM_DATA, e.Data)
	}
	if e.Timeout != 0 {
		ms, err := milliseconds(e.Timeout)
		if err != nil {
			return b, err
		}
		b = attr.AppendUint64BE(b, unix.NFTA_SET_ELEM_TIMEOUT, ms)
	}
	if e.State != "" {
		var err error
		if b, err = appendState(b, e); err != nil {
			return b, err
		}
	}
	if e.Comment == "" && !open {
		return b, nil
	}
	b, at := attr.Open(b, unix.NFTA_SET_ELEM_USERDATA)
	b, err := userdata.AppendElement(b, e.Comment, open)
	if err != nil {
		return b, err
	}
	return attr.Close(b, at), nil
}

// appendState appends what few elements have: what is left of the timeout, and
// statements.
func appendState(b []byte, e *set.Element) ([]byte, error) {
	if left := e.Expires(); left != 0 {
		ms, err := milliseconds(left)
		if err != nil {
			return b, err
		}
		b = attr.AppendUint64BE(b, unix.NFTA_SET_ELEM_EXPIRATION, ms)
	}
	return appendStateful(b, unix.NFTA_SET_ELEM_EXPR, nftaSetElemExprs, e.Stateful())
}

// appendEnd appends the end of an interval: the first key that is not in it.
func (ee *elementEncoder) appendEnd(b []byte, last string) []byte {
	b, at := attr.OpenNested(b, unix.NFTA_LIST_ELEM)
	b, key := attr.OpenNested(b, unix.NFTA_SET_ELEM_KEY)
	b = attr.AppendBytes(b, unix.NFTA_DATA_VALUE, last)
	value := b[key+2*attr.HeaderLen:][:len(last)]
	for i := len(value) - 1; i >= 0; i-- {
		if value[i]++; value[i] != 0 {
			break
		}
	}
	b = attr.Close(b, key)
	b = attr.AppendUint32BE(b, unix.NFTA_SET_ELEM_FLAGS, setElemIntervalEnd)
	b = attr.Close(b, at)
	return b
}

// rangeEnd returns the last key of an element.
func rangeEnd(e *set.Element) string {
	if e.KeyEnd == "" {
		return e.Key
	}
	return e.KeyEnd
}

// allOnes reports whether no key is greater.
func allOnes(key string) bool {
	for i := range len(key) {
		if key[i] != 0xff {
			return false
		}
	}
	return true
}

// appendValue appends a key or data.
func appendValue(b []byte, typ uint16, v string) []byte {
	b, at := attr.OpenNested(b, typ)
	b = attr.AppendBytes(b, unix.NFTA_DATA_VALUE, v)
	b = attr.Close(b, at)
	return b
}

// appendVerdict appends the data of a verdict map from its packed form, four
// bytes of code and the name of the chain. It has at least four bytes.
func appendVerdict(b []byte, data string) []byte {
	b, at := attr.OpenNested(b, unix.NFTA_SET_ELEM_DATA)
	b, verdict := attr.OpenNested(b, unix.NFTA_DATA_VERDICT)
	b = attr.AppendBytes(b, unix.NFTA_VERDICT_CODE, data[:4])
	if len(data) > 4 {
		b = attr.AppendString(b, unix.NFTA_VERDICT_CHAIN, data[4:])
	}
	b = attr.Close(b, verdict)
	b = attr.Close(b, at)
	return b
}

// elementAt returns how many elements begin in a message's list before the
// offset off of the message; intervals count once. It is -1 where the offset
// is not inside of an element.
func elementAt(message []byte, off int) int {
	if off < headerLen+genLen || off >= len(message) {
		return -1
	}
	at := headerLen + genLen
	for a := attr.NewReader(message[at:]); a.Next(); at = len(message) - a.Remaining() {
		if a.Type() == unix.NFTA_SET_ELEM_LIST_ELEMENTS {
			return elementInList(a.Bytes(), off-at-attr.HeaderLen)
		}
	}
	return -1
}

// elementInList is elementAt within the list.
func elementInList(list []byte, off int) int {
	if off < 0 {
		return -1
	}
	n := -1
	for a := attr.NewReader(list); a.Next(); {
		if !isIntervalEnd(a.Bytes()) {
			n++
		}
		if off < len(list)-a.Remaining() {
			return n
		}
	}
	return -1
}

// isIntervalEnd reports whether an encoded element is the end of an interval.
func isIntervalEnd(element []byte) bool {
	for a := attr.NewReader(element); a.Next(); {
		if a.Type() == unix.NFTA_SET_ELEM_FLAGS && len(a.Bytes()) == 4 {
			return binary.BigEndian.Uint32(a.Bytes())&setElemIntervalEnd != 0
		}
	}
	return false
}
