package history

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/entries"
	"github.com/weft-proxy/weft/aggregator/store"
)

const (
	known   = weftv1.ContentState_CONTENT_STATE_KNOWN
	absent  = weftv1.ContentState_CONTENT_STATE_ABSENT
	unknown = weftv1.ContentState_CONTENT_STATE_UNKNOWN
)

// before is what a fragment had before a change.
type before struct {
	// Fragment is "publisher/name".
	Fragment string              `json:"fragment"`
	State    weftv1.ContentState `json:"state"`
	// Whole is true if Entries are all entries, and not only those that changed.
	Whole bool `json:"whole,omitempty"`
	// Entries are nil where there was none.
	Entries map[string][]byte `json:"entries,omitempty"`
}

// write stores commits in one transaction, and removes what is over the bounds.
func (r *Recorder) write(items []*Commit) error {
	if err := r.open(); err != nil {
		return err
	}
	if len(items) == 0 {
		return nil
	}
	err := store.Guarded(func() error {
		return r.db.Load().Update(func(tx *bolt.Tx) error {
			for _, c := range items {
				if err := r.store(tx, c); err != nil {
					return fmt.Errorf("record revision %d: %w", c.Revision.GetRevision(), err)
				}
			}
			return r.trim(tx)
		})
	})
	if err != nil {
		// They may have counted what was taken back.
		r.shares = nil
	}
	if errors.Is(err, store.ErrDamaged) {
		return r.drop(err)
	}
	return err
}

// store stores one commit.
func (r *Recorder) store(tx *bolt.Tx, c *Commit) error {
	if c.Present != nil {
		strange, err := follow(tx, c.Lineage)
		if err != nil {
			return err
		}
		c.addLost(tx, strange)
	}
	var changes []before
	for i := range c.Changes {
		b, err := r.change(tx, &c.Changes[i])
		if err != nil {
			return err
		}
		if b != nil {
			changes = append(changes, *b)
		}
	}
	if c.Empty && len(changes) == 0 {
		return nil
	}
	log := tx.Bucket(logBucket)
	n, err := log.NextSequence()
	if err != nil {
		return err
	}
	key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, c.Revision.GetRevision()), n)
	entry, err := proto.Marshal(c.Revision)
	if err != nil {
		return err
	}
	text, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	log.FillPercent, tx.Bucket(beforeBucket).FillPercent = 0.9, 0.9
	if err := log.Put(key, entry); err != nil {
		return err
	}
	if err := tx.Bucket(beforeBucket).Put(key, text); err != nil {
		return err
	}
	if r.shares != nil {
		r.shares.count(key, c.Revision, entry, changes, text)
	}
	if err := add(tx, entriesKey, 1); err != nil {
		return err
	}
	return add(tx, logKey, int64(2*len(key)+len(entry)+len(text)))
}

// follow notes a lineage, and reports whether the history is that of another one.
func follow(tx *bolt.Tx, lineage string) (strange bool, err error) {
	meta := tx.Bucket(metaBucket)
	before := meta.Get(lineageKey)
	if lineage == "" || string(before) == lineage {
		return false, nil
	}
	return before != nil, meta.Put(lineageKey, []byte(lineage))
}

// addLost adds the fragments that are not there any more, and if the history is strange the others: it does not know what
// they have become.
func (c *Commit) addLost(tx *bolt.Tx, strange bool) {
	c.Revision.Fragments, c.Changes = nil, nil
	cursor := tx.Bucket(contentBucket).Cursor()
	for id, _ := cursor.First(); id != nil; id, _ = cursor.Next() {
		publisher, name, _ := strings.Cut(string(id), "/")
		key := desired.Key{Publisher: publisher, Name: name}
		kind := weftv1.FragmentChange_KIND_LOST
		switch {
		case c.Present[key] && strange:
			kind = weftv1.FragmentChange_KIND_CHANGED
		case c.Present[key]:
			continue
		}
		c.Changes = append(c.Changes, Change{Fragment: key, Existed: true, Withdrawn: !c.Present[key]})
		c.Revision.Fragments = append(c.Revision.Fragments, &weftv1.FragmentChange{Fragment: &weftv1.FragmentName{Publisher: publisher, Name: name}, Kind: kind})
	}
}

// change changes the content of a fragment. It returns what was before, or nil if nothing is
// different.
func (r *Recorder) change(tx *bolt.Tx, ch *Change) (*before, error) {
	s := load(tx, []byte(ch.Fragment.String()))
	was, size := s.state(), s.Size
	b := &before{Fragment: string(s.ID), State: was}
	if was == absent && ch.Existed {
		// It is from before the history.
		b.State = unknown
	}
	var err error
	switch {
	case ch.Withdrawn || ch.Snapshot == nil && (ch.Patch == nil || was != known):
		if was == known {
			b.Whole = true
			if b.Entries, err = s.all(); err != nil {
				return nil, err
			}
		}
		return b, r.forget(tx, s, !ch.Withdrawn)
	case ch.Snapshot != nil:
		if was != known {
			if s, err = renew(tx, s.ID); err != nil {
				return nil, err
			}
		}
		s.replace(ch.Snapshot())
	default:
		for _, t := range ch.Patch().GetTables() {
			entries.Patch(s, t)
		}
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	if was == known {
		if len(s.Was) == 0 {
			return nil, nil
		}
		b.Entries = s.Was
	}
	if err := add(tx, contentKey, s.Size-size); err != nil {
		return nil, err
	}
	if s.Size <= min(MaxContent, r.cfg.MaxBytes/4) {
		if fits, err := r.makeRoom(tx, ch.Fragment.Publisher); err != nil || fits {
			return b, err
		}
	}
	if was == known {
		all, err := s.all()
		if err != nil {
			return nil, err
		}
		b.Whole, b.Entries = true, undo(all, s.Was)
	}
	return b, r.forget(tx, s, true)
}

// renew makes an empty bucket for the content of a fragment.
func renew(tx *bolt.Tx, id []byte) (stored, error) {
	content := tx.Bucket(contentBucket)
	if content.Bucket(id) != nil {
		if err := content.DeleteBucket(id); err != nil {
			return stored{}, err
		}
	}
	if _, err := content.CreateBucket(id); err != nil {
		return stored{}, err
	}
	return load(tx, id), nil
}

// forget removes the content of a fragment, which is there and unknown afterwards, or absent.
func (r *Recorder) forget(tx *bolt.Tx, s stored, exists bool) error {
	if err := add(tx, contentKey, -s.Size); err != nil {
		return err
	}
	if exists {
		s, err := renew(tx, s.ID)
		if err != nil {
			return err
		}
		return s.Bucket.Put(unknownKey, []byte{1})
	}
	if s.Bucket == nil {
		return nil
	}
	return tx.Bucket(contentBucket).DeleteBucket(s.ID)
}

// revisionOf returns the revision of a key of the log.
func revisionOf(key []byte) uint64 {
	if len(key) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}
