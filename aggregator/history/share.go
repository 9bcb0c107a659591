package history

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/store"
)

// maxForgotten is how many publishers have a number of their own in the bucket "publishers".
const maxForgotten = 1024

// shares has what each publisher has in the log; "" stands for entries without fragments.
type shares map[string]*share

type share struct {
	entries int
	// bytes are those of the log and of the content before.
	bytes int64
	// oldest is not after its first entry.
	oldest []byte
}

// publisherOf returns the publisher of a fragment, which is "publisher/name".
func publisherOf(fragment string) string {
	publisher, _, _ := strings.Cut(fragment, "/")
	return publisher
}

// parts returns the bytes of an entry that are each publisher's.
func parts(c *weftv1.Revision, entry []byte, changes []before, text []byte) map[string]int64 {
	out := make(map[string]int64)
	for _, f := range c.GetFragments() {
		out[f.GetFragment().GetPublisher()] = 0
	}
	for i := range changes {
		// The text has it in base64.
		out[publisherOf(changes[i].Fragment)] += int64(len(changes[i].Fragment)) + changes[i].size()*4/3
	}
	switch len(out) {
	case 0:
		out[""] = int64(len(entry) + len(text))
	case 1:
		for p := range out {
			out[p] = int64(len(entry) + len(text))
		}
	default:
		for p := range out {
			out[p] += int64(len(entry) / len(out))
		}
	}
	return out
}

// count adds an entry.
func (s shares) count(key []byte, c *weftv1.Revision, entry []byte, changes []before, text []byte) {
	for p, n := range parts(c, entry, changes, text) {
		if s[p] == nil {
			s[p] = &share{oldest: bytes.Clone(key)}
		}
		s[p].entries++
		s[p].bytes += n
	}
}

// largest returns the publisher with the most, "" if there is none.
func (s shares) largest(most func(a, b *share) int) string {
	publisher := ""
	for _, p := range slices.Sorted(maps.Keys(s)) {
		if s[publisher] == nil || most(s[p], s[publisher]) > 0 {
			publisher = p
		}
	}
	return publisher
}

// readEntry returns the parts of an entry of the log.
//
// Possible errors: store.ErrDamaged.
func readEntry(entry, text []byte) (*weftv1.Revision, []before, error) {
	c, changes := &weftv1.Revision{}, []before(nil)
	if err := proto.Unmarshal(entry, c); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	if err := json.Unmarshal(text, &changes); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return c, changes, nil
}

// countAll returns the shares of what is in the log.
func countAll(tx *bolt.Tx) (shares, error) {
	out, befores := make(shares), tx.Bucket(beforeBucket)
	return out, tx.Bucket(logBucket).ForEach(func(key, entry []byte) error {
		text := befores.Get(key)
		c, changes, err := readEntry(entry, text)
		if err == nil {
			out.count(key, c, entry, changes, text)
		}
		return err
	})
}

// trim removes entries while there are too many: the oldest of the publisher that has the most.
func (r *Recorder) trim(tx *bolt.Tx) (err error) {
	for {
		most := func(a, b *share) int { return cmp.Compare(a.bytes, b.bytes) }
		if number(tx, logKey)+number(tx, contentKey) <= r.cfg.MaxBytes {
			most = func(a, b *share) int { return cmp.Compare(a.entries, b.entries) }
			if number(tx, entriesKey) <= int64(r.cfg.MaxEntries) {
				return nil
			}
		}
		if r.shares == nil {
			if r.shares, err = countAll(tx); err != nil {
				return err
			}
		}
		if len(r.shares) == 0 {
			return nil
		}
		if err := r.removeOldest(tx, r.shares.largest(most)); err != nil {
			return err
		}
	}
}

// removeOldest removes what is a publisher's in its oldest entry.
func (r *Recorder) removeOldest(tx *bolt.Tx, publisher string) error {
	log, befores, own := tx.Bucket(logBucket), tx.Bucket(beforeBucket), r.shares[publisher]
	cursor := log.Cursor()
	for key, entry := cursor.Seek(own.oldest); key != nil; key, entry = cursor.Next() {
		text := befores.Get(key)
		c, changes, err := readEntry(entry, text)
		if err != nil {
			return err
		}
		had := parts(c, entry, changes, text)
		n, ok := had[publisher]
		if !ok {
			continue
		}
		own.oldest = bytes.Clone(key)
		own.entries--
		own.bytes -= n
		if own.entries == 0 {
			delete(r.shares, publisher)
		}
		if err := putForgotten(tx, publisher, revisionOf(key)); err != nil {
			return err
		}
		if len(had) == 1 {
			freed := int64(2*len(key) + len(entry) + len(text))
			return cmp.Or(befores.Delete(key), log.Delete(key), add(tx, entriesKey, -1), add(tx, logKey, -freed))
		}
		c.Fragments = slices.DeleteFunc(c.GetFragments(), func(f *weftv1.FragmentChange) bool { return f.GetFragment().GetPublisher() == publisher })
		changes = slices.DeleteFunc(changes, func(b before) bool { return publisherOf(b.Fragment) == publisher })
		return r.rewrite(tx, own.oldest, c, changes, int64(len(entry)+len(text)), had)
	}
	// They were counted before.
	return fmt.Errorf("%w: publisher %q has no entry", store.ErrDamaged, publisher)
}

// rewrite replaces an entry that had so many bytes by what is left. The others' bytes in it change.
func (r *Recorder) rewrite(tx *bolt.Tx, key []byte, c *weftv1.Revision, changes []before, size int64, had map[string]int64) error {
	entry, err := proto.Marshal(c)
	if err != nil {
		return err
	}
	text, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	for p, n := range parts(c, entry, changes, text) {
		r.shares[p].bytes += n - had[p]
	}
	return cmp.Or(tx.Bucket(logBucket).Put(key, entry), tx.Bucket(beforeBucket).Put(key, text), add(tx, logKey, int64(len(entry)+len(text))-size))
}

// makeRoom forgets content while all of it is more than half of MaxBytes: the largest fragment of the
// publisher that has the most. It returns false if that is the publisher itself, and forgets nothing of it.
func (r *Recorder) makeRoom(tx *bolt.Tx, publisher string) (bool, error) {
	content := tx.Bucket(contentBucket)
	for number(tx, contentKey) > r.cfg.MaxBytes/2 {
		held, largest := make(map[string]int64), make(map[string]stored)
		most := publisher
		err := content.ForEachBucket(func(id []byte) error {
			s, p := load(tx, bytes.Clone(id)), publisherOf(string(id))
			if held[p] += s.Size; largest[p].Fragment == nil || s.Size > largest[p].Size {
				largest[p] = s
			}
			return nil
		})
		if err != nil {
			return false, err
		}
		for p, n := range held {
			if n > held[most] || n == held[most] && most != publisher && p < most {
				most = p
			}
		}
		if most == publisher {
			return false, nil
		}
		if err := r.forget(tx, largest[most], true); err != nil {
			return false, err
		}
	}
	return true, nil
}

// forgotten returns the last revision of which a publisher's part may be removed.
func forgotten(tx *bolt.Tx, publisher string) uint64 {
	return max(store.Number(tx.Bucket(metaBucket), commonKey), store.Number(tx.Bucket(publishersBucket), []byte(publisher)))
}

// putForgotten notes a revision of which a publisher's part is removed.
func putForgotten(tx *bolt.Tx, publisher string, revision uint64) error {
	if publisher == "" {
		return nil
	}
	if err := putNumber(tx, forgottenKey, max(number(tx, forgottenKey), int64(revision))); err != nil { //nolint:gosec // number reads it
		return err
	}
	own := tx.Bucket(publishersBucket)
	if own.Get([]byte(publisher)) == nil && own.Stats().KeyN >= maxForgotten {
		return joinForgotten(tx)
	}
	return store.PutNumber(own, []byte(publisher), revision)
}

// joinForgotten makes one number of those of all publishers.
func joinForgotten(tx *bolt.Tx) error {
	if err := tx.DeleteBucket(publishersBucket); err != nil {
		return err
	}
	if _, err := tx.CreateBucket(publishersBucket); err != nil {
		return err
	}
	return putNumber(tx, commonKey, number(tx, forgottenKey))
}

// adoptForgotten takes over what a weft without shares has removed: that is everybody's.
func adoptForgotten(tx *bolt.Tx) error {
	known := uint64(number(tx, commonKey)) //nolint:gosec // it was written as one
	err := tx.Bucket(publishersBucket).ForEach(func(_, value []byte) error {
		known = max(known, binary.BigEndian.Uint64(value))
		return nil
	})
	if err == nil && uint64(number(tx, forgottenKey)) > known { //nolint:gosec // it was written as one
		err = joinForgotten(tx)
	}
	return err
}
