package kernel

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// elementEncoder does not allocate.
type elementEncoder struct {
	set *set.Set
	add bool
	// renew restarts the time of existing elements.
	renew bool
	// ranges makes an interval two elements: its first key, and the first key after it.
	ranges bool
	keyEnd bool
}

func newElementEncoder(set *set.Set, add bool) elementEncoder {
	ranges := set.Ranges()
	return elementEncoder{set: set, add: add, ranges: ranges, keyEnd: set.Flags&unix.NFT_SET_INTERVAL != 0 && !ranges}
}

func (ee *elementEncoder) append(b []byte, elements []set.Element, i int) ([]byte, error) {
	e := &elements[i]
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
	if !ee.ranges || open || e.Key == "" || ee.set.EndsAtNext(elements, i) {
		return b, nil
	}
	return appendEnd(b, rangeEnd(e)), nil
}

// check finds mistakes for which the kernel answers only EINVAL.
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
			return errors.New("element does not name an object")
		}
	case ee.set.Verdict && len(e.Data) < 4:
		return errors.New("element has no verdict")
	case ee.set.Map && !ee.set.Verdict && len(e.Data) != int(ee.set.Data.Len):
		return fmt.Errorf("data has %d bytes: want %d", len(e.Data), ee.set.Data.Len)
	}
	return nil
}

// appendFirst encodes an element without a key as the catch-all element. open means that the
// interval extends to the greatest key and has no end.
func (ee *elementEncoder) appendFirst(b []byte, e *set.Element, open bool) ([]byte, error) {
	if e.Key == "" {
		b = attr.AppendUint32BE(b, unix.NFTA_SET_ELEM_FLAGS, setElemCatchall)
	} else {
		b = expr.AppendData(b, unix.NFTA_SET_ELEM_KEY, e.Key)
	}
	if ee.keyEnd && e.Key != "" {
		b = expr.AppendData(b, nftaSetElemKeyEnd, rangeEnd(e))
	}
	if !ee.add {
		return b, nil
	}
	switch {
	case ee.set.Object != "":
		b = attr.AppendString(b, unix.NFTA_SET_ELEM_OBJREF, e.Data)
	case ee.set.Verdict:
		b = expr.AppendVerdict(b, unix.NFTA_SET_ELEM_DATA, binary.BigEndian.Uint32([]byte(e.Data)), e.Data[4:])
	case ee.set.Map:
		b = expr.AppendData(b, unix.NFTA_SET_ELEM_DATA, e.Data)
	}
	if e.Timeout != 0 {
		b = attr.AppendUint64BE(b, unix.NFTA_SET_ELEM_TIMEOUT, uint64(e.Timeout.Milliseconds()))
	}
	if ee.renew && e.Expires() == 0 {
		if all := cmp.Or(e.Timeout, ee.set.Timeout); all != 0 {
			b = attr.AppendUint64BE(b, unix.NFTA_SET_ELEM_EXPIRATION, uint64(all.Milliseconds()))
		}
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

func appendState(b []byte, e *set.Element) ([]byte, error) {
	left, words := e.Expires(), e.Stateful()
	return attr.Fields{
		attr.If(left != 0, unix.NFTA_SET_ELEM_EXPIRATION, &left),
		oneStateful(unix.NFTA_SET_ELEM_EXPR, &words),
		severalStateful(nftaSetElemExprs, &words),
	}.Append(b)
}

func appendEnd(b []byte, last string) []byte {
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

func rangeEnd(e *set.Element) string {
	if e.KeyEnd == "" {
		return e.Key
	}
	return e.KeyEnd
}

func allOnes(key string) bool {
	for i := range len(key) {
		if key[i] != 0xff {
			return false
		}
	}
	return true
}

// elementAt returns the list index of the element at an offset, or -1; an interval counts once.
func elementAt(message []byte, off int) int {
	if off < headerLen+genLen || off >= len(message) {
		return -1
	}
	list, ok := attr.Find(message[headerLen+genLen:], unix.NFTA_SET_ELEM_LIST_ELEMENTS)
	if !ok {
		return -1
	}
	n := -1
	off -= len(message) - list.Remaining() - len(list.Bytes())
	for a := list.Nested(); off >= 0 && a.Next(); {
		if flags, ok := attr.Find(a.Bytes(), unix.NFTA_SET_ELEM_FLAGS); !ok || flags.Uint32BE()&setElemIntervalEnd == 0 {
			n++
		}
		if off < len(list.Bytes())-a.Remaining() {
			return n
		}
	}
	return -1
}
