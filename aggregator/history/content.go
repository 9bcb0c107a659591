package history

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/entries"
)

// The keys of a fragment's bucket that are not entries. Keys of entries have a space or are
// entries.Head.
const (
	sumKey     = "sum"
	sizeKey    = "size"
	unknownKey = "unknown"
)

// stored is the content of a fragment in the database.
type stored struct {
	id     []byte
	bucket *bolt.Bucket
	// size is the bytes of the entries, and sum the sum of their checksums: bbolt has none.
	size int64
	sum  uint64
	// was has what the changed entries were before; nil for one that was not there.
	was map[string][]byte
	err error
}

// load opens the content of a fragment. The bucket is nil if there is no fragment.
func load(tx *bolt.Tx, id []byte) *stored {
	s := &stored{id: id, bucket: tx.Bucket(contentBucket).Bucket(id), was: make(map[string][]byte)}
	if s.bucket != nil {
		s.size, s.sum = int64(s.number(sizeKey)), s.number(sumKey) //nolint:gosec // a size
	}
	return s
}

func (s *stored) number(key string) uint64 {
	b := s.bucket.Get([]byte(key))
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// state returns what is known of the fragment.
func (s *stored) state() weftv1.ContentState {
	switch {
	case s.bucket == nil:
		return absent
	case s.bucket.Get([]byte(unknownKey)) != nil:
		return unknown
	default:
		return known
	}
}

// all returns the entries, with a copy of their values.
//
// Possible errors: errDamaged.
func (s *stored) all() (map[string][]byte, error) {
	out, sum := make(map[string][]byte), uint64(0)
	err := s.bucket.ForEach(func(key, value []byte) error {
		if k := string(key); k != sumKey && k != sizeKey {
			out[k] = bytes.Clone(value)
			sum += checksum(s.id, key, value)
		}
		return nil
	})
	if err == nil && sum != s.sum {
		err = fmt.Errorf("%w: content of fragment %s", errDamaged, s.id)
	}
	return out, err
}

// Has implements entries.Writer.
func (s *stored) Has(key string) bool { return s.bucket.Get([]byte(key)) != nil }

// Put implements entries.Writer.
func (s *stored) Put(e entries.Entry) {
	if s.err != nil {
		return
	}
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, e.Value)
	if err != nil {
		s.err = fmt.Errorf("encode %q: %w", e.Key, err)
		return
	}
	s.set(e.Key, value)
}

// Delete implements entries.Writer.
func (s *stored) Delete(key string) { s.set(key, nil) }

// DeleteBelow implements entries.Writer.
func (s *stored) DeleteBelow(key string) {
	prefix := []byte(key + " ")
	for cursor := s.bucket.Cursor(); s.err == nil; {
		k, _ := cursor.Seek(prefix)
		if !bytes.HasPrefix(k, prefix) {
			return
		}
		s.Delete(string(k))
	}
}

// set puts or, with nil, deletes an entry, and remembers what it was.
func (s *stored) set(key string, value []byte) {
	k := []byte(key)
	old := s.bucket.Get(k)
	if s.err != nil || (old == nil) == (value == nil) && bytes.Equal(old, value) {
		return
	}
	if _, ok := s.was[key]; !ok {
		s.was[key] = bytes.Clone(old)
	}
	if old != nil {
		s.size -= int64(len(k) + len(old))
		s.sum -= checksum(s.id, k, old)
	}
	if value == nil {
		s.err = s.bucket.Delete(k)
		return
	}
	s.size += int64(len(k) + len(value))
	s.sum += checksum(s.id, k, value)
	s.err = s.bucket.Put(k, value)
}

// replace makes the content that of a snapshot.
func (s *stored) replace(f *weftv1.Fragment) {
	all := entries.Of(f)
	keep := make(map[string]bool, len(all))
	for _, e := range all {
		keep[e.Key] = true
	}
	var gone []string
	s.err = s.bucket.ForEach(func(key, _ []byte) error {
		if k := string(key); !keep[k] && k != sumKey && k != sizeKey {
			gone = append(gone, k)
		}
		return nil
	})
	for _, key := range gone {
		s.Delete(key)
	}
	s.bucket.FillPercent = 0.9
	for _, e := range all {
		s.Put(e)
	}
}

// finish stores the size and the sum, and forgets changes that were taken back.
func (s *stored) finish() error {
	if s.err != nil {
		return s.err
	}
	for key, old := range s.was {
		if now := s.bucket.Get([]byte(key)); (now == nil) == (old == nil) && bytes.Equal(now, old) {
			delete(s.was, key)
		}
	}
	for key, n := range map[string]uint64{sizeKey: uint64(s.size), sumKey: s.sum} { //nolint:gosec // a size
		if err := s.bucket.Put([]byte(key), binary.BigEndian.AppendUint64(nil, n)); err != nil {
			return err
		}
	}
	return nil
}

// undo returns entries as they were before changes.
func undo(all, was map[string][]byte) map[string][]byte {
	for key, value := range was {
		if value == nil {
			delete(all, key)
		} else {
			all[key] = value
		}
	}
	return all
}

// assemble makes a fragment of its entries.
func assemble(all map[string][]byte) (*weftv1.Fragment, error) {
	f := &weftv1.Fragment{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := entries.Add(f, key, all[key]); err != nil {
			return nil, fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	return f, nil
}

// checksum is FNV-1a of texts, each with its length.
func checksum(parts ...[]byte) uint64 {
	h := fnv.New64a()
	var n [4]byte
	for _, p := range parts {
		binary.BigEndian.PutUint32(n[:], uint32(len(p))) //nolint:gosec // a value has at most 2 GiB
		_, _ = h.Write(n[:])
		_, _ = h.Write(p)
	}
	return h.Sum64()
}
