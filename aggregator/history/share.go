package history

import (
	"bytes"
	"cmp"
	"encoding/binary"

	bolt "go.etcd.io/bbolt"

	"github.com/weft-proxy/weft/aggregator/store"
)

const (
	// common is the share of what belongs to no publisher, or to several. No publisher can have
	// that name.
	common = "-"
	// maxShares is how many shares there are before those of which nothing is left are joined.
	maxShares = 1024
)

// share is what the history has of a publisher.
type share struct {
	publisher            string
	bucket               *bolt.Bucket
	log, before, content *bolt.Bucket
}

// find returns the share of a publisher. The buckets are nil if there is none.
func find(tx *bolt.Tx, publisher string) share {
	s := share{publisher: publisher, bucket: tx.Bucket(publishersBucket).Bucket([]byte(publisher))}
	if s.bucket != nil {
		s.log, s.before, s.content = s.bucket.Bucket(logBucket), s.bucket.Bucket(beforeBucket), s.bucket.Bucket(contentBucket)
	}
	return s
}

// obtain is find, and makes the share if there is none.
func obtain(tx *bolt.Tx, publisher string) (share, error) {
	if s := find(tx, publisher); s.bucket != nil {
		return s, nil
	}
	if err := joinEmpty(tx); err != nil {
		return share{}, err
	}
	bucket, err := tx.Bucket(publishersBucket).CreateBucket([]byte(publisher))
	for _, name := range [][]byte{logBucket, beforeBucket, contentBucket} {
		if err == nil {
			_, err = bucket.CreateBucket(name)
		}
	}
	return find(tx, publisher), err
}

// shares returns the shares of the publishers that are wanted, by name.
func shares(tx *bolt.Tx, wanted func(publisher string) bool) (all []share) {
	cursor := tx.Bucket(publishersBucket).Cursor()
	for key, _ := cursor.First(); key != nil; key, _ = cursor.Next() {
		if publisher := string(key); wanted(publisher) {
			all = append(all, find(tx, publisher))
		}
	}
	return all
}

func everybody(string) bool { return true }

func (s *share) number(key []byte) int64 {
	return int64(store.Number(s.bucket, key)) //nolint:gosec // add wrote it
}

func (s *share) add(key []byte, delta int64) error {
	return store.PutNumber(s.bucket, key, uint64(s.number(key)+delta)) //nolint:gosec // number reads it
}

// grow changes the bytes of the content, and the sum of all shares.
func (s *share) grow(delta int64) error {
	meta := s.bucket.Tx().Bucket(metaBucket)
	return cmp.Or(s.add(contentKey, delta), store.PutNumber(meta, contentKey, store.Number(meta, contentKey)+uint64(delta))) //nolint:gosec // the sum is positive
}

// put stores an entry of the log.
func (s *share) put(key, entry, before []byte) error {
	s.log.FillPercent, s.before.FillPercent = 0.9, 0.9
	return cmp.Or(s.log.Put(key, entry), s.before.Put(key, before), s.add(entriesKey, 1), s.add(logKey, int64(2*len(key)+len(entry)+len(before))))
}

// removeOldest removes the oldest entry of the log.
func (s *share) removeOldest() error {
	key, entry := s.log.Cursor().First()
	key = bytes.Clone(key)
	freed := int64(2*len(key) + len(entry) + len(s.before.Get(key)))
	return cmp.Or(
		s.log.Delete(key), s.before.Delete(key), s.add(entriesKey, -1), s.add(logKey, -freed),
		store.PutNumber(s.bucket, forgottenKey, revisionOf(key)),
	)
}

// most returns the share with the greatest number, and the sum of all.
func most(all []share, key []byte) (largest *share, sum int64) {
	for i := range all {
		sum += all[i].number(key)
		if largest == nil || all[i].number(key) > largest.number(key) {
			largest = &all[i]
		}
	}
	return largest, sum
}

// trim removes entries while there are too many: the oldest of the publisher that has the most.
func (r *Recorder) trim(tx *bolt.Tx) error {
	all := shares(tx, everybody)
	for {
		largest, size := most(all, logKey)
		_, content := most(all, contentKey)
		if size+content <= r.cfg.MaxBytes {
			var entries int64
			if largest, entries = most(all, entriesKey); entries <= int64(r.cfg.MaxEntries) {
				return nil
			}
		}
		if largest.number(entriesKey) == 0 {
			return nil
		}
		if err := largest.removeOldest(); err != nil {
			return err
		}
	}
}

// makeRoom forgets content while all of it is more than half of MaxBytes: the largest fragment of the
// publisher that has the most. It returns false if that is the publisher itself, and forgets nothing of it.
func (r *Recorder) makeRoom(tx *bolt.Tx, own share) (bool, error) {
	if store.Number(tx.Bucket(metaBucket), contentKey) <= uint64(r.cfg.MaxBytes)/2 { //nolint:gosec // it is positive
		return true, nil
	}
	// The publisher itself comes first: it has the most if another one has as much.
	all := append([]share{own}, shares(tx, func(publisher string) bool { return publisher != own.publisher })...)
	for {
		from, size := most(all, contentKey)
		if size <= r.cfg.MaxBytes/2 {
			return true, nil
		}
		if from == &all[0] {
			return false, nil
		}
		var largest stored
		err := from.content.ForEachBucket(func(id []byte) error {
			if s := load(from.content, bytes.Clone(id)); largest.Fragment == nil || s.Size > largest.Size {
				largest = s
			}
			return nil
		})
		if err == nil {
			err = from.forget(largest, true)
		}
		if err != nil {
			return false, err
		}
	}
}

// forgotten returns the last revision of which entries of the publisher may be removed.
func (s *share) forgotten(tx *bolt.Tx) uint64 {
	return max(store.Number(tx.Bucket(metaBucket), forgottenKey), store.Number(s.bucket, forgottenKey))
}

// joinEmpty removes the shares of which nothing is left if there are too many, and notes what all of
// them have forgotten.
func joinEmpty(tx *bolt.Tx) error {
	all := shares(tx, everybody)
	if len(all) < maxShares {
		return nil
	}
	for _, s := range all {
		if id, _ := s.content.Cursor().First(); id != nil || s.number(entriesKey) > 0 {
			continue
		}
		err := cmp.Or(store.PutNumber(tx.Bucket(metaBucket), forgottenKey, s.forgotten(tx)), tx.Bucket(publishersBucket).DeleteBucket([]byte(s.publisher)))
		if err != nil {
			return err
		}
	}
	return nil
}

// revisionOf returns the revision of a key of the log.
func revisionOf(key []byte) uint64 {
	if len(key) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}
