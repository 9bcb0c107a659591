package statedir

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/types/known/emptypb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/entries"
	"github.com/weft-proxy/weft/aggregator/store"
)

// configuredKey is the key of an entry that is there if Fragment.Configured is true.
const configuredKey = "configured"

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
		return fs.change(fs.live, id, func(w *store.Fragment) {
			for _, t := range c.Patch().GetTables() {
				entries.Patch(w, t)
			}
		})
	}
	if was := store.Load(fs.live, id); was.Bucket != nil {
		fs.total -= was.Sum
		if err := fs.live.DeleteBucket(id); err != nil {
			return err
		}
	}
	switch {
	case c.Snapshot == nil:
		return nil
	case snapshot != nil:
		return fs.change(fs.live, id, func(w *store.Fragment) { w.Append(snapshot) })
	}
	if err := fs.staged.MoveBucket(id, fs.live); err != nil {
		return err
	}
	fs.total += store.Load(fs.live, id).Sum
	return nil
}

// change changes the entries of a fragment that is live or staged.
func (fs *fragments) change(parent *bolt.Bucket, id []byte, f func(*store.Fragment)) error {
	b, err := parent.CreateBucketIfNotExists(id)
	if err != nil {
		return err
	}
	w := store.Load(parent, id)
	was := w.Sum
	f(w)
	if parent == fs.live {
		fs.total += w.Sum - was
	}
	if err := w.Finish(); err != nil {
		return err
	}
	version := firstVersion
	switch {
	case w.Expires:
		version = expiryVersion
	case w.Has(configuredKey):
		version = configuredVersion
	}
	return putVersion(b.Tx(), version)
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
				return fs.change(tx.Bucket(parent), id, func(w *store.Fragment) { w.Append(part) })
			})
		})
		if err != nil {
			return fmt.Errorf("store fragment %s: %w", key, err)
		}
	}
	return nil
}

// readFragments reads the durable fragments, each as a part of its own.
func (c *Contents) readFragments(tx *bolt.Tx, part func(Kind, func() error)) {
	var sum uint64
	part(KindDurable, func() error {
		b := tx.Bucket(fragmentsBucket)
		if b == nil {
			return store.ErrDamaged
		}
		cursor := b.Cursor()
		for id, _ := cursor.First(); id != nil; id, _ = cursor.Next() {
			part(KindDurable, func() error {
				stored := store.Load(b, id)
				sum += stored.Sum
				f, err := readFragment(stored)
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
			err = fmt.Errorf("%w: fragments are missing", store.ErrDamaged)
		}
		return err
	})
}

// readFragment reads one fragment.
func readFragment(stored *store.Fragment) (Fragment, error) {
	publisher, name, ok := strings.Cut(string(stored.ID), "/")
	if !ok || stored.Bucket == nil {
		return Fragment{}, store.ErrDamaged
	}
	f := Fragment{Key: desired.Key{Publisher: publisher, Name: name}, Content: &weftv1.Fragment{}}
	return f, stored.Each(func(key string, value []byte) error {
		if key == configuredKey {
			f.Configured = true
			return nil
		}
		return entries.Add(f.Content, key, value)
	})
}
