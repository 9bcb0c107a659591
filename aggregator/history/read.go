package history

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
)

// maxCompared bounds the bytes of content in a comparison, unless the reader sees everything.
const maxCompared = 16 << 20

type Query struct {
	// Limit is the greatest number of entries; 0 means all.
	Limit int
	// Before, if not 0, excludes this revision and later ones.
	Before uint64
	// Publisher, if not empty, excludes other fragments, and entries without fragments.
	Publisher string
	// Reader excludes invisible fragments, and entries without a visible one, unless it sees
	// everything.
	Reader desired.Reader
}

// List returns entries, the newest first, and the last revision that may be forgotten.
//
// Possible errors: ErrDisabled, ErrUnavailable, ctx's.
func (r *Recorder) List(ctx context.Context, q Query) (all []*weftv1.Revision, lost uint64, err error) {
	if err := r.Flush(ctx); err != nil {
		return nil, 0, err
	}
	err = r.view(func(t *tables) error {
		found := make(map[string]*weftv1.Revision)
		own := t.shares(q.wants)
		lost = t.lostOf(own, q.Reader.All && q.Publisher == "")
		for _, s := range own {
			if s.publisher != common {
				lost = max(lost, s.lost())
			}
			n := 0
			for key, value := range s.log.Backward() {
				if q.Limit != 0 && n >= q.Limit {
					break
				}
				if q.Before != 0 && revisionOf(key) >= q.Before {
					continue
				}
				n++
				entry := found[key]
				if entry == nil {
					entry = &weftv1.Revision{}
					found[key] = entry
				}
				if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(value, entry); err != nil {
					return fmt.Errorf("%w: %w", store.ErrDamaged, err)
				}
			}
		}
		for _, key := range slices.Backward(slices.Sorted(maps.Keys(found))) {
			if q.Limit == 0 || len(all) < q.Limit {
				all = append(all, found[key])
			}
		}
		return nil
	})
	return all, lost, err
}

func (q *Query) wants(publisher string) bool {
	return q.Reader.Sees(publisher) && (q.Publisher == "" || q.Publisher == publisher)
}

// Content is the content of a fragment at a revision. Fragment is nil if it is unknown or absent.
type Content struct {
	State    weftv1.ContentState
	Fragment *weftv1.Fragment
}

type Difference struct {
	Fragment desired.Key
	From, To Content
}

// Compare returns the fragments that changed after revision from, up to revision to, by publisher
// and name.
//
// Possible errors: ErrDisabled, ErrForgotten, ErrTooLarge, ErrUnavailable, ctx's.
func (r *Recorder) Compare(ctx context.Context, from, to uint64, reader desired.Reader) (out []Difference, err error) {
	if err := r.Flush(ctx); err != nil {
		return nil, err
	}
	err = r.view(func(t *tables) error {
		own := t.shares(func(publisher string) bool { return publisher != common && reader.Sees(publisher) })
		var lost []uint64
		for i := range own {
			lost = append(lost, own[i].lost())
		}
		begin := t.lostOf(own, reader.All)
		if len(own) > 0 {
			begin = max(begin, slices.Min(lost))
		}
		if from < begin {
			return fmt.Errorf("%w: %d: the history begins after revision %d", ErrForgotten, from, begin)
		}
		c := &comparison{from: from, to: to, limit: r.cfg.MaxBytes}
		if !reader.All {
			c.limit = min(c.limit, maxCompared)
		}
		for i := range own {
			if err := c.compare(&own[i], lost[i]); err != nil {
				return err
			}
		}
		out = c.out
		return nil
	})
	return out, err
}

// Content returns the content of a fragment after the last recorded commit.
//
// Possible errors: ErrDisabled, ErrUnavailable, ctx's.
func (r *Recorder) Content(ctx context.Context, key desired.Key) (c Content, err error) {
	if err := r.Flush(ctx); err != nil {
		return c, err
	}
	c.State = absent
	err = r.view(func(t *tables) error {
		own := t.find(key.Publisher)
		if own.log == nil {
			return nil
		}
		c, err = load(own.content, key.String()).get()
		return err
	})
	return c, err
}

func (s *stored) get() (Content, error) {
	if s.state() != known {
		return Content{State: s.state()}, nil
	}
	return contentOf(known, s.all())
}

func contentOf(state weftv1.ContentState, all map[string][]byte) (c Content, err error) {
	if c.State = state; state == known {
		c.Fragment, err = assemble(all)
	}
	return c, err
}

type comparison struct {
	from, to    uint64
	out         []Difference
	size, limit int64
}

func (c *comparison) hold(n int64) error {
	if c.size += n; c.size > c.limit {
		return fmt.Errorf("%w: these fragments have more than %d MiB: compare fewer revisions", ErrTooLarge, c.limit>>20)
	}
	return nil
}

type changed struct {
	revision uint64
	before
}

// compare adds the differences of a publisher. Entries up to the revision forgotten are removed.
func (c *comparison) compare(s *share, forgotten uint64) error {
	changes := make(map[string][]changed)
	for key, value := range s.before.Backward() {
		if revisionOf(key) <= c.from {
			break
		}
		var all []before
		if err := json.Unmarshal(value, &all); err != nil {
			return fmt.Errorf("%w: %w", store.ErrDamaged, err)
		}
		for _, b := range slices.Backward(all) {
			changes[b.Fragment] = append(changes[b.Fragment], changed{revisionOf(key), b})
		}
	}
	var ids []string
	for id, all := range changes {
		if all[len(all)-1].revision <= c.to {
			ids = append(ids, id)
		}
	}
	if c.from < forgotten && c.to != c.from+1 {
		// All fragments may have changed, except by one commit that is in the log.
		ids = append(ids, s.content.Names()...)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		d, err := c.difference(load(s.content, id), changes[id])
		if err != nil {
			return err
		}
		if c.from < forgotten {
			d.From = Content{State: unknown}
		}
		if c.to < forgotten {
			d.To = Content{State: unknown}
		}
		if !same(d.From, d.To) {
			c.out = append(c.out, d)
		}
	}
	return nil
}

// difference undoes changes, the newest first, from the present content.
func (c *comparison) difference(s *stored, changes []changed) (d Difference, err error) {
	d.Fragment = keyOf(s.id)
	state, all := s.state(), map[string][]byte(nil)
	if state == known {
		if err := c.hold(s.size()); err != nil {
			return d, err
		}
		all = s.all()
	}
	for _, ch := range changes {
		if ch.revision <= c.to && d.To.State == 0 {
			if d.To, err = contentOf(state, all); err != nil {
				return d, err
			}
		}
		if ch.Whole {
			if err := c.hold(ch.size()); err != nil {
				return d, err
			}
		}
		state, all = ch.undo(state, all)
	}
	d.From, err = contentOf(state, all)
	if d.To.State == 0 {
		d.To = d.From
	}
	return d, err
}

func (b *before) undo(state weftv1.ContentState, all map[string][]byte) (weftv1.ContentState, map[string][]byte) {
	switch {
	case b.State != known:
		return b.State, nil
	case b.Whole:
		return known, b.Entries
	case state == known:
		return known, undo(all, b.Entries)
	default:
		return unknown, nil
	}
}

func (b *before) size() (n int64) {
	for key, value := range b.Entries {
		n += int64(len(key) + len(value))
	}
	return n
}

func same(a, b Content) bool {
	return a.State == b.State && a.State != unknown && proto.Equal(a.Fragment, b.Fragment)
}
