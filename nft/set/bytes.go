package set

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Unpack returns n elements without options. Keys and data follow one another in the form of [Element]: a key
// has Key.Len bytes, and in an interval set its end, of the same length, follows. The elements share two
// strings.
//
// A type is possible if each of its parts may have any value in whole bytes: addresses, protocols, ports,
// marks and other integers, but not names, verdicts or bit fields. A key has at least four bytes.
func (s *Set) Unpack(n int, keys, data []byte) ([]Element, error) {
	u, err := newUnpacker(s, s.Map)
	if err != nil {
		return nil, packedError(s, err)
	}
	return u.elements(n, keys, data)
}

// UnpackKeys is Unpack for Key and KeyEnd alone.
func UnpackKeys(s *Set, n int, keys []byte) ([]Element, error) {
	u, err := newUnpacker(s, false)
	if err != nil {
		return nil, packedError(s, err)
	}
	return u.elements(n, keys, nil)
}

func packedError(s *Set, err error) error {
	return fmt.Errorf("packed elements of %s %s: %w", s.noun(), s.Name, err)
}

type unpacker struct {
	set       *Set
	key, data []Part
	// bytes of a key with its end, and of data
	width, dataLen int
}

// minPacked is the least length of a key in bytes: it bounds the elements of a message by the message's size.
const minPacked = 4

func newUnpacker(s *Set, data bool) (u unpacker, err error) {
	u = unpacker{set: s, width: int(s.Key.Len)}
	if s.Flags&FlagInterval != 0 {
		u.width *= 2
	}
	if data && (s.Verdict || s.Object != "" || s.DataInterval) {
		return u, errors.New("its values have no packed form: give the elements as text")
	}
	if u.key, err = s.Key.Resolve(); err == nil && data {
		u.dataLen = int(s.Data.Len)
		u.data, err = s.Data.Resolve()
	}
	if s.Key.Len < minPacked {
		return u, fmt.Errorf("a key of %d bytes has no packed form: give the elements as text", s.Key.Len)
	}
	for _, p := range slices.Concat(u.key, u.data) {
		if p.Text() || p.Raw || p.Bits != 8*p.Size {
			return u, fmt.Errorf("type %s has no packed form: give the elements as text", p.Type)
		}
	}
	return u, err
}

func (u *unpacker) elements(n int, keys, data []byte) ([]Element, error) {
	if err := cmp.Or(checkBytes("keys", len(keys), n, u.width), checkBytes("values", len(data), n, u.dataLen)); err != nil {
		return nil, packedError(u.set, err)
	}
	allKeys, allData := string(keys), string(data)
	out := make([]Element, n)
	for i := range out {
		e := &out[i]
		e.Key, e.Data = allKeys[i*u.width:(i+1)*u.width], allData[i*u.dataLen:(i+1)*u.dataLen]
		if u.set.Flags&FlagInterval != 0 {
			e.Key, e.KeyEnd = e.Key[:u.width/2], e.Key[u.width/2:]
		}
		if err := u.check(e); err != nil {
			return nil, packedError(u.set, fmt.Errorf("element %d: %w", i+1, err))
		}
	}
	return out, nil
}

func checkBytes(of string, have, n, width int) error {
	if have != n*width {
		return fmt.Errorf("its %s have %d bytes: want %d times %d", of, have, n, width)
	}
	return nil
}

// check refuses padding other than zeros, and ranges that end before they begin.
func (u *unpacker) check(e *Element) error {
	if !zeroPadding(u.key, e.Key) || !zeroPadding(u.key, e.KeyEnd) || !zeroPadding(u.data, e.Data) {
		return errors.New("bytes between its parts are not zero")
	}
	at := 0
	for i := 0; at < len(e.KeyEnd); i++ {
		end := at + u.key[i].Size
		if e.Key[at:end] > e.KeyEnd[at:end] {
			return errors.New("the range ends before it begins")
		}
		at += u.key[i].Padded()
	}
	return nil
}

func zeroPadding(parts []Part, b string) bool {
	if len(parts) < 2 {
		return true
	}
	for i := 0; b != ""; i++ {
		for _, c := range []byte(b[parts[i].Size:parts[i].Padded()]) {
			if c != 0 {
				return false
			}
		}
		b = b[parts[i].Padded():]
	}
	return true
}
