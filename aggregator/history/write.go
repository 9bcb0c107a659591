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
	changes := make(map[string][]before)
	for i := range c.Changes {
		b, err := r.change(tx, &c.Changes[i])
		if err != nil {
			return err
		}
		if b != nil {
			publisher := c.Changes[i].Fragment.Publisher
			changes[publisher] = append(changes[publisher], *b)
		}
	}
	if c.Empty && len(changes) == 0 {
		return nil
	}
	n, err := tx.Bucket(publishersBucket).NextSequence()
	if err != nil {
		return err
	}
	key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, c.Revision.GetRevision()), n)
	for publisher, part := range divide(c.Revision) {
		s, err := obtain(tx, publisher)
		if err != nil {
			return err
		}
		entry, err := proto.Marshal(part)
		if err != nil {
			return err
		}
		text, err := json.Marshal(changes[publisher])
		if err != nil {
			return err
		}
		if err := s.put(key, entry, text); err != nil {
			return err
		}
	}
	return nil
}

// divide returns the parts of an entry that are each publisher's. The numbers of all fragments together
// are common if there are several publishers.
func divide(c *weftv1.Revision) map[string]*weftv1.Revision {
	out := make(map[string]*weftv1.Revision)
	part := func(publisher string) *weftv1.Revision {
		if out[publisher] == nil {
			out[publisher] = &weftv1.Revision{Revision: c.GetRevision(), Time: c.GetTime(), Wait: c.GetWait(), Build: c.GetBuild(), Kernel: c.GetKernel()}
		}
		return out[publisher]
	}
	rest := common
	for _, f := range c.GetFragments() {
		rest = f.GetFragment().GetPublisher()
		p := part(rest)
		p.Fragments = append(p.Fragments, f)
	}
	if len(out) > 1 {
		rest = common
	}
	whole := part(rest)
	whole.Changes, whole.Size, whole.Lost = c.GetChanges(), c.GetSize(), c.GetLost()
	return out
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
	for _, s := range shares(tx, everybody) {
		cursor := s.content.Cursor()
		for id, _ := cursor.First(); id != nil; id, _ = cursor.Next() {
			key := keyOf(string(id))
			kind := weftv1.FragmentChange_KIND_LOST
			switch {
			case c.Present[key] && strange:
				kind = weftv1.FragmentChange_KIND_CHANGED
			case c.Present[key]:
				continue
			}
			c.Changes = append(c.Changes, Change{Fragment: key, Existed: true, Withdrawn: !c.Present[key]})
			c.Revision.Fragments = append(c.Revision.Fragments, &weftv1.FragmentChange{Fragment: &weftv1.FragmentName{Publisher: key.Publisher, Name: key.Name}, Kind: kind})
		}
	}
}

// keyOf returns the fragment that is "publisher/name".
func keyOf(id string) desired.Key {
	publisher, name, _ := strings.Cut(id, "/")
	return desired.Key{Publisher: publisher, Name: name}
}

// change changes the content of a fragment. It returns what was before, or nil if nothing is
// different.
func (r *Recorder) change(tx *bolt.Tx, ch *Change) (*before, error) {
	own, err := obtain(tx, ch.Fragment.Publisher)
	if err != nil {
		return nil, err
	}
	s := load(own.content, []byte(ch.Fragment.String()))
	was, size := s.state(), s.Size
	b := &before{Fragment: string(s.ID), State: was}
	if was == absent && ch.Existed {
		// It is from before the history.
		b.State = unknown
	}
	switch {
	case ch.Withdrawn || ch.Snapshot == nil && (ch.Patch == nil || was != known):
		if was == known {
			b.Whole = true
			if b.Entries, err = s.all(); err != nil {
				return nil, err
			}
		}
		return b, own.forget(s, !ch.Withdrawn)
	case ch.Snapshot != nil:
		if was != known {
			if s, err = renew(own.content, s.ID); err != nil {
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
	if err := own.grow(s.Size - size); err != nil {
		return nil, err
	}
	if s.Size <= min(MaxContent, r.cfg.MaxBytes/4) {
		if fits, err := r.makeRoom(tx, own); err != nil || fits {
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
	return b, own.forget(s, true)
}

// renew makes an empty bucket for the content of a fragment.
func renew(content *bolt.Bucket, id []byte) (stored, error) {
	if content.Bucket(id) != nil {
		if err := content.DeleteBucket(id); err != nil {
			return stored{}, err
		}
	}
	if _, err := content.CreateBucket(id); err != nil {
		return stored{}, err
	}
	return load(content, id), nil
}

// forget removes the content of a fragment, which is there and unknown afterwards, or absent.
func (s *share) forget(f stored, exists bool) error {
	if err := s.grow(-f.Size); err != nil {
		return err
	}
	if exists {
		f, err := renew(s.content, f.ID)
		if err != nil {
			return err
		}
		return f.Bucket.Put(unknownKey, []byte{1})
	}
	if f.Bucket == nil {
		return nil
	}
	return s.content.DeleteBucket(f.ID)
}
