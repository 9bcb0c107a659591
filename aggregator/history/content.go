package history

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/entries"
	"github.com/weft-proxy/weft/aggregator/store"
)

// unknownKey is the only key of a fragment of which the content is not known.
var unknownKey = []byte("unknown")

// stored is the content of a fragment in the database.
type stored struct{ *store.Fragment }

// load opens the content of a fragment. The bucket is nil if there is no fragment.
func load(content *bolt.Bucket, id []byte) stored {
	f := store.Load(content, id)
	f.Was = make(map[string][]byte)
	return stored{f}
}

// state returns what is known of the fragment.
func (s stored) state() weftv1.ContentState {
	switch {
	case s.Bucket == nil:
		return absent
	case s.Bucket.Get(unknownKey) != nil:
		return unknown
	default:
		return known
	}
}

// all returns the entries, with a copy of their values.
//
// Possible errors: store.ErrDamaged.
func (s stored) all() (map[string][]byte, error) {
	out := make(map[string][]byte)
	return out, s.Each(func(key string, value []byte) error {
		out[key] = bytes.Clone(value)
		return nil
	})
}

// replace makes the content that of a snapshot.
func (s stored) replace(f *weftv1.Fragment) {
	all := entries.Of(f)
	keep := make(map[string]bool, len(all))
	for _, e := range all {
		keep[e.Key] = true
	}
	var gone []string
	s.Err = s.Each(func(key string, _ []byte) error {
		if !keep[key] {
			gone = append(gone, key)
		}
		return nil
	})
	for _, key := range gone {
		s.Delete(key)
	}
	s.Append(all)
}

// finish stores the size and the sum, and forgets changes that were taken back.
func (s stored) finish() error {
	maps.DeleteFunc(s.Was, func(key string, old []byte) bool {
		now := s.Bucket.Get([]byte(key))
		return (now == nil) == (old == nil) && bytes.Equal(now, old)
	})
	if err := s.Finish(); err != nil {
		return err
	}
	return store.PutNumber(s.Bucket, store.SizeKey, uint64(s.Size)) //nolint:gosec // a size
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
			return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
		}
	}
	return f, nil
}
