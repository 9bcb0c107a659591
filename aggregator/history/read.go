package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
)

// maxCompared is how many bytes of content one comparison has for a reader who does not see
// everything, at each of the two revisions.
const maxCompared = 16 << 20

// Query says which entries List returns.
type Query struct {
	// Limit is the greatest number of entries; 0 means all.
	Limit int
	// Before excludes this revision and later ones; 0 excludes none.
	Before uint64
	// Publisher, if it is not empty, excludes the fragments of others, and entries without
	// fragments.
	Publisher string
	// Reader says whose fragments are returned. An entry without such a fragment is left out,
	// unless the reader sees everything.
	Reader desired.Reader
}

// List returns entries, the newest first, and the last revision that may be forgotten.
//
// Possible errors: ErrDisabled, ErrUnavailable, ctx's.
func (r *Recorder) List(ctx context.Context, q Query) (all []*weftv1.Revision, lost uint64, err error) {
	if err := r.Flush(ctx); err != nil {
		return nil, 0, err
	}
	err = r.view(func(tx *bolt.Tx) error {
		found := make(map[string]*weftv1.Revision)
		for _, s := range shares(tx, q.wants) {
			if s.publisher != nobody {
				lost = max(lost, s.forgotten(tx))
			}
			cursor, n := s.log.Cursor(), 0
			for key, value := cursor.Last(); key != nil && (q.Limit == 0 || n < q.Limit); key, value = cursor.Prev() {
				if q.Before != 0 && revisionOf(key) >= q.Before {
					continue
				}
				n++
				entry := found[string(key)]
				if entry == nil {
					entry = &weftv1.Revision{}
					found[string(key)] = entry
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

// Content is what a fragment had at a revision. Fragment is nil if that is not known, or if
// there was none.
type Content struct {
	State    weftv1.ContentState
	Fragment *weftv1.Fragment
}

// Difference is a fragment that changed between two revisions.
type Difference struct {
	Fragment desired.Key
	// From and To are the content at the two revisions.
	From, To Content
}

// Compare returns the fragments that changed after the revision from, up to the revision to,
// by publisher and name.
//
// Possible errors: ErrDisabled, ErrForgotten, ErrTooLarge, ErrUnavailable, ctx's.
func (r *Recorder) Compare(ctx context.Context, from, to uint64, reader desired.Reader) (out []Difference, err error) {
	if err := r.Flush(ctx); err != nil {
		return nil, err
	}
	err = r.view(func(tx *bolt.Tx) error {
		c := &comparison{from: from, to: to, limit: r.cfg.MaxBytes, found: make(map[desired.Key]*difference), forgotten: make(map[string]uint64)}
		c.shares = shares(tx, func(publisher string) bool { return publisher != nobody && reader.Sees(publisher) })
		begin := uint64(math.MaxUint64)
		for _, s := range c.shares {
			c.forgotten[s.publisher] = s.forgotten(tx)
			begin = min(begin, c.forgotten[s.publisher])
		}
		if len(c.shares) > 0 && from < begin {
			return fmt.Errorf("%w: %d: the history begins after revision %d", ErrForgotten, from, begin)
		}
		if !reader.All {
			c.limit = min(c.limit, maxCompared)
		}
		if err := c.walk(c.find); err != nil {
			return err
		}
		if err := cmp.Or(c.findLacking(), c.walk(c.undo)); err != nil {
			return err
		}
		out, err = c.result()
		return err
	})
	return out, err
}

// Content returns what a fragment has after the last recorded commit.
//
// Possible errors: ErrDisabled, ErrUnavailable, ctx's.
func (r *Recorder) Content(ctx context.Context, key desired.Key) (c Content, err error) {
	if err := r.Flush(ctx); err != nil {
		return c, err
	}
	err = r.view(func(tx *bolt.Tx) error {
		own := find(tx, key.Publisher)
		if c.State = absent; own.bucket == nil {
			return nil
		}
		s := load(own.content, []byte(key.String()))
		if c.State = s.state(); c.State != known {
			return nil
		}
		all, err := s.all()
		if err == nil {
			c.Fragment, err = assemble(all)
		}
		return err
	})
	return c, err
}

// comparison finds the differences between two revisions.
type comparison struct {
	// shares are those that the reader sees.
	shares   []share
	from, to uint64
	found    map[desired.Key]*difference
	// forgotten has the last revision of which entries of each publisher may be removed.
	forgotten map[string]uint64
	// size is the bytes of the content so far, and limit the most.
	size, limit int64
}

// hold counts content.
//
// Possible errors: ErrTooLarge.
func (c *comparison) hold(n int64) error {
	if c.size += n; c.size > c.limit {
		return fmt.Errorf("%w: these fragments have more than %d MiB: compare fewer revisions", ErrTooLarge, c.limit>>20)
	}
	return nil
}

// difference is one that is being made. The entries are those at the revision that the walk
// has reached.
type difference struct {
	Difference
	state   weftv1.ContentState
	entries map[string][]byte
}

// walk calls f for each change after the first revision, the newest of a publisher first.
func (c *comparison) walk(f func(s share, revision uint64, b before) error) error {
	for _, s := range c.shares {
		cursor := s.before.Cursor()
		for key, value := cursor.Last(); key != nil && revisionOf(key) > c.from; key, value = cursor.Prev() {
			var changes []before
			if err := json.Unmarshal(value, &changes); err != nil {
				return fmt.Errorf("%w: %w", store.ErrDamaged, err)
			}
			for _, b := range slices.Backward(changes) {
				if err := f(s, revisionOf(key), b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// find notes a fragment that changed.
func (c *comparison) find(_ share, revision uint64, b before) error {
	if revision <= c.to {
		c.of(b.Fragment)
	}
	return nil
}

// of returns the difference of a fragment.
func (c *comparison) of(id string) *difference {
	key := keyOf(id)
	d := c.found[key]
	if d == nil {
		d = &difference{Difference: Difference{Fragment: key}}
		c.found[key] = d
	}
	return d
}

// findLacking notes the fragments of publishers of which entries after the first revision are removed: they
// may have changed, unless one commit is looked at, which is in the log.
func (c *comparison) findLacking() error {
	for _, s := range c.shares {
		if c.to == c.from+1 || c.from >= c.forgotten[s.publisher] {
			continue
		}
		if err := s.content.ForEachBucket(func(id []byte) error { return c.load(s, c.of(string(id))) }); err != nil {
			return err
		}
	}
	return nil
}

// load sets a difference to the content of now.
func (c *comparison) load(own share, d *difference) (err error) {
	s := load(own.content, []byte(d.Fragment.String()))
	if d.state = s.state(); d.state == known {
		if err = c.hold(s.Size); err == nil {
			d.entries, err = s.all()
		}
	}
	return err
}

// undo goes back behind a change.
func (c *comparison) undo(s share, revision uint64, b before) error {
	d := c.found[keyOf(b.Fragment)]
	if d == nil {
		return nil
	}
	if d.state == 0 {
		if err := c.load(s, d); err != nil {
			return err
		}
	}
	if revision <= c.to && d.To.State == 0 {
		if err := d.content(&d.To); err != nil {
			return err
		}
	}
	switch {
	case b.State != known:
		d.state, d.entries = b.State, nil
	case b.Whole:
		d.state, d.entries = known, b.Entries
		size := int64(0)
		for key, value := range b.Entries {
			size += int64(len(key) + len(value))
		}
		return c.hold(size)
	case d.state == known:
		d.entries = undo(d.entries, b.Entries)
	default:
		d.state = unknown
	}
	return nil
}

// content sets a content to the present one of the walk.
func (d *difference) content(c *Content) (err error) {
	if c.State = d.state; d.state == known {
		c.Fragment, err = assemble(d.entries)
	}
	return err
}

// result returns the differences by publisher and name.
func (c *comparison) result() ([]Difference, error) {
	var out []Difference
	for _, d := range slices.SortedFunc(maps.Values(c.found), func(a, b *difference) int { return a.Fragment.Compare(b.Fragment) }) {
		if d.To.State == 0 {
			if err := d.content(&d.To); err != nil {
				return nil, err
			}
		}
		if err := d.content(&d.From); err != nil {
			return nil, err
		}
		if n := c.forgotten[d.Fragment.Publisher]; c.from < n {
			d.From = Content{State: unknown}
			if c.to < n {
				d.To = Content{State: unknown}
			}
		}
		if !same(d.From, d.To) {
			out = append(out, d.Difference)
		}
	}
	return out, nil
}

// same reports whether nothing is different between two contents that are known.
func same(a, b Content) bool {
	return a.State == b.State && a.State != unknown && proto.Equal(a.Fragment, b.Fragment)
}
