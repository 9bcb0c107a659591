package history

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/entries"
	"github.com/weft-proxy/weft/aggregator/store"
)

// stored is a fragment's content: unknown without entries, absent without bucket.
type stored struct {
	entries.Stored
	id string
}

func load(content *store.Bucket, id string) *stored {
	return &stored{entries.Stored{Bucket: content.Bucket(id), Was: make(map[string][]byte)}, id}
}

func (s *stored) size() int64 {
	if s.Bucket == nil {
		return 0
	}
	return s.Size()
}

func (s *stored) state() weftv1.ContentState {
	switch {
	case s.Bucket == nil:
		return absent
	case s.Count() == 0:
		return unknown
	default:
		return known
	}
}

// all returns copies, valid after the transaction.
func (s *stored) all() map[string][]byte {
	out := make(map[string][]byte)
	for key, value := range s.From("") {
		out[key] = bytes.Clone(value)
	}
	return out
}

func (s *stored) replace(f *weftv1.Fragment) {
	all := entries.Of(f)
	keep := make(map[string]bool, len(all))
	for _, e := range all {
		keep[e.Key] = true
	}
	var gone []string
	for key := range s.From("") {
		if !keep[key] {
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		s.Delete(key)
	}
	s.PutAll(all)
}

// finish returns the first error, and forgets changes without effect.
func (s *stored) finish() error {
	maps.DeleteFunc(s.Was, func(key string, old []byte) bool {
		now := s.Get(key)
		return (now == nil) == (old == nil) && bytes.Equal(now, old)
	})
	return s.Err
}

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

func assemble(all map[string][]byte) (*weftv1.Fragment, error) {
	f := &weftv1.Fragment{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := entries.Add(f, key, all[key]); err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
		}
	}
	return f, nil
}
