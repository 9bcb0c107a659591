package history

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

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

// before is the content of a fragment before a change.
type before struct {
	// Fragment is "publisher/name".
	Fragment string              `json:"fragment"`
	State    weftv1.ContentState `json:"state"`
	// Whole entries are complete, not only the changed ones.
	Whole bool `json:"whole,omitempty"`
	// Entries have nil for an entry that was missing.
	Entries map[string][]byte `json:"entries,omitempty"`
}

func (r *Recorder) write() error {
	items := r.take()
	if len(items) == 0 {
		return nil
	}
	err := r.cfg.Store.Update(func(tx *store.Tx) error {
		t, err := open(tx)
		if err != nil {
			return err
		}
		for _, c := range items {
			if err := r.store(&t, c); err != nil {
				return fmt.Errorf("record revision %d: %w", c.Revision.GetRevision(), err)
			}
		}
		return r.trim(&t)
	})
	if err != nil {
		r.requeue(items)
	}
	return err
}

func (r *Recorder) store(t *tables, c *Commit) error {
	if c.Present != nil {
		c.addLost(t)
	}
	changes := make(map[string][]before)
	for i := range c.Updates {
		b, err := r.change(t, &c.Updates[i])
		if err != nil {
			return err
		}
		if b != nil {
			publisher := c.Updates[i].Fragment.Publisher
			changes[publisher] = append(changes[publisher], *b)
		}
	}
	if c.Empty && len(changes) == 0 {
		return nil
	}
	n, err := t.log.NextSequence()
	if err != nil {
		return err
	}
	key := string(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, c.Revision.GetRevision()), n))
	for publisher, part := range divide(c.Revision) {
		s, err := t.obtain(publisher)
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

// divide returns an entry's parts by publisher. Totals are in the only part, or in the common part.
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

func (c *Commit) addLost(t *tables) {
	c.Revision.Fragments, c.Updates = nil, nil
	for _, s := range t.shares(everybody) {
		for _, id := range s.content.Names() {
			key := keyOf(id)
			if c.Present[key] {
				continue
			}
			c.Updates = append(c.Updates, Update{Fragment: key, Existed: true, Withdrawn: true})
			c.Revision.Fragments = append(c.Revision.Fragments, &weftv1.FragmentChange{
				Fragment: &weftv1.FragmentName{Publisher: key.Publisher, Name: key.Name}, Kind: weftv1.FragmentChange_KIND_LOST,
			})
		}
	}
}

func keyOf(id string) desired.Key {
	publisher, name, _ := strings.Cut(id, "/")
	return desired.Key{Publisher: publisher, Name: name}
}

// change changes the content of a fragment, and returns the earlier one, or nil without effect.
func (r *Recorder) change(t *tables, ch *Update) (*before, error) {
	own, err := t.obtain(ch.Fragment.Publisher)
	if err != nil {
		return nil, err
	}
	s := load(own.content, ch.Fragment.String())
	was := s.state()
	b := &before{Fragment: s.id, State: was}
	if was == absent && ch.Existed {
		// The fragment is older than the history.
		b.State = unknown
	}
	switch {
	case ch.Withdrawn || ch.Snapshot == nil && (ch.Patch == nil || was != known):
		if was == known {
			b.Whole, b.Entries = true, s.all()
		}
		return b, own.forget(s, !ch.Withdrawn)
	case ch.Snapshot != nil:
		if s.Bucket, err = own.content.Obtain(s.id); err != nil {
			return nil, err
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
	if s.size() <= min(MaxContent, r.cfg.MaxBytes/4) {
		if fits, err := r.makeRoom(t, own); err != nil || fits {
			return b, err
		}
	}
	if was == known {
		b.Whole, b.Entries = true, undo(s.all(), s.Was)
	}
	return b, own.forget(s, true)
}

// forget makes the content unknown if the fragment exists, otherwise absent.
func (s *share) forget(f *stored, exists bool) error {
	err := s.content.DeleteBucket(f.id)
	if err == nil && exists {
		_, err = s.content.Obtain(f.id)
	}
	return err
}
