package store

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/entries"
)

// The keys of a fragment's bucket that are not entries. Keys of entries have a space or are
// entries.Head.
var (
	sumKey = []byte("sum")
	// SizeKey is for the number of bytes of the entries, if the user of the package stores it.
	SizeKey = []byte("size")
)

// Fragment is the content of a fragment: a bucket with its entries (package entries) and the
// sum of their checksums. It implements entries.Writer.
type Fragment struct {
	ID     []byte
	Bucket *bolt.Bucket
	// Size is the bytes of the entries, and Sum the sum of their checksums.
	Size int64
	Sum  uint64
	// Was has what the changed entries were before, nil for one that was not there. It is not
	// filled if it is nil.
	Was map[string][]byte
	// Expires is true after an element with an expire_time was put.
	Expires bool
	// Err is the first error of a change.
	Err error
}

// Load opens the content of a fragment. The bucket is nil if there is none.
func Load(parent *bolt.Bucket, id []byte) *Fragment {
	f := &Fragment{ID: id, Bucket: parent.Bucket(id)}
	if f.Bucket != nil {
		f.Size, f.Sum = int64(Number(f.Bucket, SizeKey)), Number(f.Bucket, sumKey) //nolint:gosec // a size
	}
	return f
}

// Each calls visit with each entry in the order of the keys. The value belongs to the transaction.
//
// Possible errors: ErrDamaged, visit's.
func (f *Fragment) Each(visit func(key string, value []byte) error) error {
	sum := uint64(0)
	err := f.Bucket.ForEach(func(key, value []byte) error {
		if bytes.Equal(key, sumKey) || bytes.Equal(key, SizeKey) {
			return nil
		}
		sum += Checksum(f.ID, key, value)
		return visit(string(key), value)
	})
	if err == nil && sum != f.Sum {
		err = fmt.Errorf("%w: content of fragment %s", ErrDamaged, f.ID)
	}
	return err
}

// Has implements entries.Writer.
func (f *Fragment) Has(key string) bool { return f.Bucket.Get([]byte(key)) != nil }

// Put implements entries.Writer.
func (f *Fragment) Put(e entries.Entry) {
	if element, ok := e.Value.(*weftv1.Element); ok && element.GetState().GetExpireTime() != nil {
		f.Expires = true
	}
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, e.Value)
	if err != nil && f.Err == nil {
		f.Err = fmt.Errorf("encode %q: %w", e.Key, err)
	}
	f.Set(e.Key, value)
}

// Append puts entries in the order of their keys into a new bucket.
func (f *Fragment) Append(all []entries.Entry) {
	// No room has to be left for others.
	f.Bucket.FillPercent = 0.9
	for _, e := range all {
		f.Put(e)
	}
}

// Delete implements entries.Writer.
func (f *Fragment) Delete(key string) { f.Set(key, nil) }

// DeleteBelow implements entries.Writer.
func (f *Fragment) DeleteBelow(key string) {
	prefix := []byte(key + " ")
	for cursor := f.Bucket.Cursor(); f.Err == nil; {
		k, _ := cursor.Seek(prefix)
		if !bytes.HasPrefix(k, prefix) {
			return
		}
		f.Delete(string(k))
	}
}

// Set puts or, with nil, deletes an entry.
func (f *Fragment) Set(key string, value []byte) {
	k := []byte(key)
	old := f.Bucket.Get(k)
	if f.Err != nil || (old == nil) == (value == nil) && bytes.Equal(old, value) {
		return
	}
	if _, ok := f.Was[key]; !ok && f.Was != nil {
		f.Was[key] = bytes.Clone(old)
	}
	if old != nil {
		f.Size -= int64(len(k) + len(old))
		f.Sum -= Checksum(f.ID, k, old)
	}
	if value == nil {
		f.Err = f.Bucket.Delete(k)
		return
	}
	f.Size += int64(len(k) + len(value))
	f.Sum += Checksum(f.ID, k, value)
	f.Err = f.Bucket.Put(k, value)
}

// Finish stores the sum. It returns Err if that is set.
func (f *Fragment) Finish() error {
	if f.Err != nil {
		return f.Err
	}
	return PutNumber(f.Bucket, sumKey, f.Sum)
}
