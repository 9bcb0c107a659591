package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"

	bolt "go.etcd.io/bbolt"
)

// statsKey has a bucket's stats. It sorts after the keys of entries, which never begin with 0xff.
var statsKey = []byte{0xff}

type stats struct {
	// sum adds up the FNV-1a checksums of entries, size the bytes of keys and values.
	sum, size, count uint64
}

func (s *stats) add(o stats) { s.sum, s.size, s.count = s.sum+o.sum, s.size+o.size, s.count+o.count }

func (s *stats) remove(o stats) { s.sum, s.size, s.count = s.sum-o.sum, s.size-o.size, s.count-o.count }

// entry returns the stats of an entry in a bucket of a part. Without the part, a page of another part could
// pass for one of its own.
func entry(part, bucket, key, value []byte) stats {
	return stats{checksum(part, bucket, key, value), uint64(len(key) + len(value)), 1}
}

func readStats(b *bolt.Bucket) (s stats) {
	if v := b.Get(statsKey); len(v) == 24 {
		s.sum, s.size, s.count = binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:]), binary.BigEndian.Uint64(v[16:])
	}
	return s
}

func putStats(b *bolt.Bucket, s stats) error {
	v := binary.BigEndian.AppendUint64(make([]byte, 0, 24), s.sum)
	return b.Put(statsKey, binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(v, s.size), s.count))
}

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

// Tx is a transaction. Values that it returns are valid until it ends.
type Tx struct {
	tx    *bolt.Tx
	parts []Part
	open  map[string]*Bucket
}

func (s *Store) newTx(tx *bolt.Tx) *Tx { return &Tx{tx, s.parts, make(map[string]*Bucket)} }

// Bucket returns the bucket of a part, and makes a missing one if the transaction writes.
//
// Possible errors: ErrDamaged, bbolt's.
func (t *Tx) Bucket(name string) (*Bucket, error) {
	if b := t.open[name]; b != nil {
		return b, nil
	}
	key := []byte(name)
	b := t.tx.Bucket(key)
	if b == nil {
		if !t.tx.Writable() {
			return nil, ErrDamaged
		}
		var err error
		if b, err = t.tx.CreateBucket(key); err != nil {
			return nil, err
		}
	}
	part := key
	for i := range t.parts {
		if p := &t.parts[i]; p.Staging == name {
			part = []byte(p.Bucket)
		}
	}
	t.open[name] = newBucket(b, part, key, nil)
	return t.open[name], nil
}

func (t *Tx) finish() error { return finish(t.open) }

func finish(open map[string]*Bucket) error {
	for _, b := range open {
		if err := finish(b.open); err != nil {
			return err
		}
		if b.stats != b.stored {
			if err := putStats(b.b, b.stats); err != nil {
				return err
			}
		}
	}
	return nil
}

// Bucket is a bucket in a transaction. No key begins with 0xff.
type Bucket struct {
	b      *bolt.Bucket
	part   []byte
	name   []byte
	parent *Bucket
	open   map[string]*Bucket
	// stats are current, stored are in the database. Both include inner buckets.
	stats, stored stats
}

func newBucket(b *bolt.Bucket, part, name []byte, parent *Bucket) *Bucket {
	// Entries rarely change.
	b.FillPercent = 0.9
	s := readStats(b)
	return &Bucket{b: b, part: part, name: name, parent: parent, open: make(map[string]*Bucket), stats: s, stored: s}
}

// Size counts the bytes of keys and values, with inner buckets.
func (b *Bucket) Size() int64 { return int64(b.stats.size) } //nolint:gosec // a size

// Count counts the entries, with inner buckets.
func (b *Bucket) Count() int { return int(b.stats.count) } //nolint:gosec // a number of entries

func (b *Bucket) change(gone, added stats) {
	for ; b != nil; b = b.parent {
		b.stats.remove(gone)
		b.stats.add(added)
	}
}

// Bucket returns an inner bucket, or nil.
func (b *Bucket) Bucket(name string) *Bucket {
	if sub := b.open[name]; sub != nil {
		return sub
	}
	key := []byte(name)
	sub := b.b.Bucket(key)
	if sub == nil {
		return nil
	}
	b.open[name] = newBucket(sub, b.part, key, b)
	return b.open[name]
}

// Obtain is Bucket, and makes a missing bucket.
func (b *Bucket) Obtain(name string) (*Bucket, error) {
	if sub := b.Bucket(name); sub != nil {
		return sub, nil
	}
	if _, err := b.b.CreateBucket([]byte(name)); err != nil {
		return nil, err
	}
	return b.Bucket(name), nil
}

// DeleteBucket deletes an inner bucket, if it exists.
func (b *Bucket) DeleteBucket(name string) error {
	sub := b.Bucket(name)
	if sub == nil {
		return nil
	}
	b.change(sub.stats, stats{})
	delete(b.open, name)
	return b.b.DeleteBucket(sub.name)
}

// MoveBucket moves an inner bucket within a part or from its Staging. The transaction must not have
// changed it: bbolt moves it from the disk.
func (b *Bucket) MoveBucket(name string, to *Bucket) error {
	sub := b.Bucket(name)
	if sub == nil || sub.stats != sub.stored || !bytes.Equal(b.part, to.part) {
		return fmt.Errorf("bucket %s is missing, of another part, or was changed in the same transaction", name)
	}
	b.change(sub.stats, stats{})
	to.change(stats{}, sub.stats)
	delete(b.open, name)
	return b.b.MoveBucket(sub.name, to.b)
}

// Get returns the value of an entry, or nil.
func (b *Bucket) Get(key string) []byte { return b.b.Get([]byte(key)) }

// Put puts an entry; nil deletes it.
func (b *Bucket) Put(key string, value []byte) error {
	k := []byte(key)
	old := b.b.Get(k)
	if old == nil && value == nil {
		return nil
	}
	var gone, added stats
	if old != nil {
		gone = entry(b.part, b.name, k, old)
	}
	if value != nil {
		added = entry(b.part, b.name, k, value)
	}
	b.change(gone, added)
	if value == nil {
		return b.b.Delete(k)
	}
	return b.b.Put(k, value)
}

// Number returns the number of PutNumber, or 0.
func (b *Bucket) Number(key string) uint64 {
	value := b.Get(key)
	if len(value) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

func (b *Bucket) PutNumber(key string, n uint64) error {
	return b.Put(key, binary.BigEndian.AppendUint64(nil, n))
}

// From returns the entries with a prefix in order. The bucket must not change meanwhile.
func (b *Bucket) From(prefix string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		c := b.b.Cursor()
		for k, v := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, v = c.Next() {
			if v != nil && !bytes.Equal(k, statsKey) && !yield(string(k), v) {
				return
			}
		}
	}
}

// Backward returns all entries in reverse order. The bucket must not change meanwhile.
func (b *Bucket) Backward() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		c := b.b.Cursor()
		for k, v := c.Last(); k != nil; k, v = c.Prev() {
			if v != nil && !bytes.Equal(k, statsKey) && !yield(string(k), v) {
				return
			}
		}
	}
}

// Names returns the sorted names of inner buckets.
func (b *Bucket) Names() (names []string) {
	_ = b.b.ForEachBucket(func(k []byte) error { names = append(names, string(k)); return nil })
	return names
}

func (b *Bucket) NextSequence() (uint64, error) { return b.b.NextSequence() }
