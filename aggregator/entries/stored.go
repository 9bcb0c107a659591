package entries

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/store"
)

// Stored is a bucket with the entries of a fragment. It implements Writer.
type Stored struct {
	*store.Bucket
	// Was has the earlier values of changed entries, nil for new entries. It may be nil.
	Was map[string][]byte
	Err error
}

// Has implements Writer.
func (s *Stored) Has(key string) bool { return s.Get(key) != nil }

// Put implements Writer.
func (s *Stored) Put(e Entry) {
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, e.Value)
	if err != nil && s.Err == nil {
		s.Err = fmt.Errorf("encode %q: %w", e.Key, err)
	}
	s.set(e.Key, value)
}

// PutAll puts entries.
func (s *Stored) PutAll(all []Entry) {
	for _, e := range all {
		s.Put(e)
	}
}

// Delete implements Writer.
func (s *Stored) Delete(key string) { s.set(key, nil) }

// DeleteBelow implements Writer.
func (s *Stored) DeleteBelow(key string) {
	var gone []string
	for k := range s.From(key + " ") {
		gone = append(gone, k)
	}
	for _, k := range gone {
		s.Delete(k)
	}
}

// A nil value deletes the entry.
func (s *Stored) set(key string, value []byte) {
	old := s.Get(key)
	if s.Err != nil || (old == nil) == (value == nil) && bytes.Equal(old, value) {
		return
	}
	if _, ok := s.Was[key]; !ok && s.Was != nil {
		s.Was[key] = bytes.Clone(old)
	}
	s.Err = s.Bucket.Put(key, value)
}
