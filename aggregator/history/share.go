package history

import (
	"cmp"
	"encoding/binary"

	"github.com/weft-proxy/weft/aggregator/store"
)

const (
	// common is the share for several publishers or no publisher. No publisher can have the name.
	common = "-"
	// joined is the key of the removed shares' last forgotten revision.
	joined = "*"
	// maxShares is the number of shares from which empty ones are joined.
	maxShares = 1024
)

// share is a publisher's part of the tables.
type share struct {
	publisher            string
	log, before, content *store.Bucket
	// forgotten has the last removed revision by publisher, and for joined shares.
	forgotten *store.Bucket
}

// tables are the inner buckets of the history. All but forgotten have a bucket for each publisher.
type tables struct{ log, before, content, forgotten *store.Bucket }

// open makes missing buckets to write.
func open(tx *store.Tx) (t tables, err error) {
	root, err := tx.Bucket(bucket)
	for name, b := range map[string]**store.Bucket{"log": &t.log, "before": &t.before, "content": &t.content, "forgotten": &t.forgotten} {
		if err == nil {
			*b, err = root.Obtain(name)
		}
	}
	return t, err
}

func (t *tables) size() int64 { return t.log.Size() + t.before.Size() + t.content.Size() }

// find returns a share; missing ones have nil buckets.
func (t *tables) find(publisher string) share {
	return share{publisher, t.log.Bucket(publisher), t.before.Bucket(publisher), t.content.Bucket(publisher), t.forgotten}
}

// obtain is find, and makes a missing share.
func (t *tables) obtain(publisher string) (share, error) {
	if s := t.find(publisher); s.log != nil {
		return s, nil
	}
	err := t.joinEmpty()
	if gone := t.forgotten.Number(joined); err == nil && gone > 0 {
		err = t.forgotten.PutNumber(publisher, gone)
	}
	for _, b := range []*store.Bucket{t.log, t.before, t.content} {
		if err == nil {
			_, err = b.Obtain(publisher)
		}
	}
	return t.find(publisher), err
}

func (t *tables) shares(wanted func(publisher string) bool) (all []share) {
	for _, publisher := range t.log.Names() {
		if wanted(publisher) {
			all = append(all, t.find(publisher))
		}
	}
	return all
}

func everybody(string) bool { return true }

func (s *share) put(key string, entry, before []byte) error {
	return cmp.Or(s.log.Put(key, entry), s.before.Put(key, before))
}

func (s *share) removeOldest() error {
	for key := range s.log.From("") {
		return cmp.Or(s.log.Put(key, nil), s.before.Put(key, nil), s.forgotten.PutNumber(s.publisher, revisionOf(key)))
	}
	return nil
}

func (s *share) entries() int64 { return int64(s.log.Count()) }

func (s *share) logSize() int64 { return s.log.Size() + s.before.Size() }

func (s *share) contentSize() int64 { return s.content.Size() }

func most(all []share, number func(*share) int64) (largest *share) {
	for i := range all {
		if largest == nil || number(&all[i]) > number(largest) {
			largest = &all[i]
		}
	}
	return largest
}

// trim removes the oldest entries of the publisher with the most.
func (r *Recorder) trim(t *tables) error {
	all := t.shares(everybody)
	for {
		number := (*share).logSize
		if t.size() <= r.cfg.MaxBytes {
			if t.log.Count() <= r.cfg.MaxEntries {
				return nil
			}
			number = (*share).entries
		}
		largest := most(all, number)
		if largest == nil || largest.log.Count() == 0 {
			return nil
		}
		if err := largest.removeOldest(); err != nil {
			return err
		}
	}
}

// makeRoom forgets the largest fragments of the publisher with the most until content takes half of
// MaxBytes. It returns false if own has the most.
func (r *Recorder) makeRoom(t *tables, own share) (bool, error) {
	if t.content.Size() <= r.cfg.MaxBytes/2 {
		return true, nil
	}
	// most prefers the first share: the publisher itself among equals.
	all := append([]share{own}, t.shares(func(publisher string) bool { return publisher != own.publisher })...)
	for t.content.Size() > r.cfg.MaxBytes/2 {
		from := most(all, (*share).contentSize)
		if from == &all[0] {
			return false, nil
		}
		largest := &stored{}
		for _, id := range from.content.Names() {
			if s := load(from.content, id); largest.Bucket == nil || s.size() > largest.size() {
				largest = s
			}
		}
		if err := from.forget(largest, true); err != nil {
			return false, err
		}
	}
	return true, nil
}

// lost returns the last revision from which entries of the publisher may be missing.
func (s *share) lost() uint64 {
	if s.log == nil {
		return s.forgotten.Number(joined)
	}
	return s.forgotten.Number(s.publisher)
}

// lostOf returns the last forgotten revision of joined shares that a reader may see beside its own.
func (t *tables) lostOf(own []share, everybody bool) uint64 {
	if len(own) > 0 && !everybody {
		return 0
	}
	return t.forgotten.Number(joined)
}

// joinEmpty removes empty shares, and notes their last forgotten revision.
func (t *tables) joinEmpty() error {
	all := t.shares(everybody)
	if len(all) < maxShares {
		return nil
	}
	for _, s := range all {
		if s.log.Count() > 0 || len(s.content.Names()) > 0 {
			continue
		}
		err := cmp.Or(t.forgotten.PutNumber(joined, max(t.forgotten.Number(joined), s.lost())), t.forgotten.Put(s.publisher, nil),
			t.log.DeleteBucket(s.publisher), t.before.DeleteBucket(s.publisher), t.content.DeleteBucket(s.publisher))
		if err != nil {
			return err
		}
	}
	return nil
}

func revisionOf(key string) uint64 {
	if len(key) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64([]byte(key))
}
