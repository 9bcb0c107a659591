package statedir

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/entries"
)

const (
	// sumKey is the key of the sum of a fragment's bucket.
	sumKey = "sum"
	// configuredKey is there if Fragment.Configured is true.
	configuredKey = "configured"
)

// entriesOf returns what a fragment's bucket has, without its sum, in the order of the keys.
func entriesOf(f *weftv1.Fragment, configured bool) []entries.Entry {
	all := entries.Of(f)
	if !configured {
		return all
	}
	mark := entries.Entry{Key: configuredKey, Value: &emptypb.Empty{}}
	i, _ := slices.BinarySearchFunc(all, configuredKey, func(e entries.Entry, key string) int { return cmp.Compare(e.Key, key) })
	return slices.Insert(all, i, mark)
}

// changeFragments changes durable fragments in a transaction.
func changeFragments(tx *bolt.Tx, f func(*fragments) error) error {
	total, err := getState(tx, fragmentsKey)
	if err != nil {
		return err
	}
	fs := &fragments{live: tx.Bucket(fragmentsBucket), staged: tx.Bucket(stagedBucket)}
	if total != nil {
		fs.total = binary.BigEndian.Uint64(total)
	}
	if err := f(fs); err != nil {
		return err
	}
	return putState(tx, fragmentsKey, binary.BigEndian.AppendUint64(nil, fs.total))
}

// fragments are the durable fragments in a transaction.
type fragments struct {
	live, staged *bolt.Bucket
	// total is the sum of the sums of all fragments: it shows that one is missing.
	total uint64
}

// store stores a change of a fragment. A snapshot has these entries, or is staged if
// there are none.
func (fs *fragments) store(c Change, snapshot []entries.Entry) error {
	id := []byte(c.Fragment.String())
	if c.Patch != nil {
		return fs.change(fs.live, id, func(w *fragmentWriter) {
			for _, t := range c.Patch().GetTables() {
				entries.Patch(w, t)
			}
		})
	}
	if b := fs.live.Bucket(id); b != nil {
		fs.total -= storedSum(b)
		if err := fs.live.DeleteBucket(id); err != nil {
			return err
		}
	}
	switch {
	case c.Snapshot == nil:
		return nil
	case snapshot != nil:
		return fs.change(fs.live, id, func(w *fragmentWriter) { w.putAll(snapshot) })
	}
	if err := fs.staged.MoveBucket(id, fs.live); err != nil {
		return err
	}
	fs.total += storedSum(fs.live.Bucket(id))
	return nil
}

// change changes the entries of a fragment that is live or staged.
func (fs *fragments) change(parent *bolt.Bucket, id []byte, f func(*fragmentWriter)) error {
	b, err := parent.CreateBucketIfNotExists(id)
	if err != nil {
		return err
	}
	was := storedSum(b)
	w := &fragmentWriter{bucket: b, id: id, sum: was}
	f(w)
	if parent == fs.live {
		fs.total += w.sum - was
	}
	err = errors.Join(w.err, b.Put([]byte(sumKey), binary.BigEndian.AppendUint64(nil, w.sum)))
	if w.configured {
		err = errors.Join(err, putVersion(b.Tx(), configuredVersion))
	}
	return err
}

// putInParts stores the entries of a fragment that is not there yet, live or staged,
// in several transactions, because a transaction holds its entries in memory and one
// that stores the record has to wait for it. What was staged before is replaced.
func putInParts(update func(func(*bolt.Tx) error) error, parent []byte, key desired.Key, all []entries.Entry) error {
	id := []byte(key.String())
	for i, part := range slices.Collect(slices.Chunk(all, partEntries)) {
		err := update(func(tx *bolt.Tx) error {
			return changeFragments(tx, func(fs *fragments) error {
				if i == 0 && fs.staged.Bucket(id) != nil {
					if err := fs.staged.DeleteBucket(id); err != nil {
						return err
					}
				}
				return fs.change(tx.Bucket(parent), id, func(w *fragmentWriter) { w.putAll(part) })
			})
		})
		if err != nil {
			return fmt.Errorf("store fragment %s: %w", key, err)
		}
	}
	return nil
}

// storedSum returns the sum that a fragment's bucket has.
func storedSum(b *bolt.Bucket) uint64 {
	sum := b.Get([]byte(sumKey))
	if len(sum) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(sum)
}

// fragmentWriter changes the entries of a fragment. After an error it does
// nothing.
type fragmentWriter struct {
	bucket *bolt.Bucket
	id     []byte
	// sum is that of the checksums of all entries, each with the fragment's name.
	sum uint64
	// configured is true if the fragment got its mark.
	configured bool
	err        error
}

func (w *fragmentWriter) putAll(all []entries.Entry) {
	// They are appended, so that no room has to be left for others.
	w.bucket.FillPercent = 0.9
	for _, e := range all {
		w.Put(e)
	}
}

// Put implements entries.Writer.
func (w *fragmentWriter) Put(e entries.Entry) {
	if w.err != nil {
		return
	}
	w.configured = w.configured || e.Key == configuredKey
	key := []byte(e.Key)
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, e.Value)
	if err != nil {
		w.err = fmt.Errorf("encode %q: %w", e.Key, err)
		return
	}
	w.subtract(key)
	w.sum += checksum(w.id, key, value)
	w.err = w.bucket.Put(key, value)
}

// Delete implements entries.Writer.
func (w *fragmentWriter) Delete(key string) {
	if w.err == nil && w.subtract([]byte(key)) {
		w.err = w.bucket.Delete([]byte(key))
	}
}

// subtract takes an entry out of the sum; false means that there is none.
func (w *fragmentWriter) subtract(key []byte) bool {
	value := w.bucket.Get(key)
	if value == nil {
		return false
	}
	w.sum -= checksum(w.id, key, value)
	return true
}

// Has implements entries.Writer.
func (w *fragmentWriter) Has(key string) bool { return w.bucket.Get([]byte(key)) != nil }

// DeleteBelow implements entries.Writer.
func (w *fragmentWriter) DeleteBelow(key string) {
	prefix := []byte(key + " ")
	for cursor := w.bucket.Cursor(); w.err == nil; {
		k, _ := cursor.Seek(prefix)
		if !bytes.HasPrefix(k, prefix) {
			return
		}
		w.Delete(string(k))
	}
}

// readFragments reads the durable fragments, each as a part of its own.
func (c *Contents) readFragments(tx *bolt.Tx, part func(Kind, func() error)) {
	var sum uint64
	part(KindDurable, func() error {
		b := tx.Bucket(fragmentsBucket)
		if b == nil {
			return errDamaged
		}
		cursor := b.Cursor()
		for id, _ := cursor.First(); id != nil; id, _ = cursor.Next() {
			part(KindDurable, func() error {
				sum += storedSum(b.Bucket(id))
				f, err := readFragment(b.Bucket(id), id)
				if err != nil {
					return fmt.Errorf("fragment %s: %w", id, err)
				}
				c.Fragments = append(c.Fragments, f)
				return nil
			})
		}
		return nil
	})
	part(KindDurable, func() error {
		total, err := getState(tx, fragmentsKey)
		if err == nil && len(total) == 8 && binary.BigEndian.Uint64(total) != sum {
			err = fmt.Errorf("%w: fragments are missing", errDamaged)
		}
		return err
	})
}

// readFragment reads one fragment.
func readFragment(b *bolt.Bucket, id []byte) (Fragment, error) {
	publisher, name, ok := strings.Cut(string(id), "/")
	if !ok || b == nil {
		return Fragment{}, errDamaged
	}
	var sum uint64
	f := Fragment{Key: desired.Key{Publisher: publisher, Name: name}, Content: &weftv1.Fragment{}}
	err := b.ForEach(func(key, value []byte) error {
		if string(key) == sumKey {
			return nil
		}
		sum += checksum(id, key, value)
		if string(key) == configuredKey {
			f.Configured = true
			return nil
		}
		return entries.Add(f.Content, string(key), value)
	})
	if err == nil && sum != storedSum(b) {
		err = errDamaged
	}
	return f, err
}
