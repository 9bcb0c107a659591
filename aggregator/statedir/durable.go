package statedir

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/emptypb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/entries"
	"github.com/weft-proxy/weft/aggregator/store"
)

// Update is a committed update of a fragment, durable before or after. At most one of Snapshot and
// Patch is set; without both the fragment is removed.
type Update struct {
	Fragment desired.Key
	// Snapshot returns the whole content, Patch the difference, at each attempt to store the
	// change.
	Snapshot   func() *weftv1.Fragment
	Patch      func() *weftv1.Patch
	Configured bool
	// Done gets nil when the change is stored, or the error before the next attempt.
	Done func(error)
}

// Store queues a change. Senders bound the queue: streams wait for answers, and Failing has patches
// refused.
func (d *Dir) Store(c Update) {
	d.mu.Lock()
	d.add(c)
	d.mu.Unlock()
	if c.Done != nil {
		d.task.Await(c.Done)
	} else {
		d.task.Wake(0)
	}
}

// add queues a change. A snapshot or removal replaces earlier changes of the fragment. mu is held.
func (d *Dir) add(c Update) {
	if c.Patch == nil {
		d.pending = slices.DeleteFunc(d.pending, func(o Update) bool { return o.Fragment == c.Fragment })
	}
	d.pending = append(d.pending, c)
}

// Failing returns why the last changes could not be stored, or nil. It ignores SaveRecord.
func (d *Dir) Failing() error { return d.task.Err() }

// partEntries bounds the entries of a large snapshot in one transaction.
const partEntries = 8192

const configuredKey = "configured"

// write stores the queued changes. After a failure they come before later ones.
func (d *Dir) write() error {
	d.mu.Lock()
	batch := d.pending
	d.pending = nil
	d.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	err := d.storeAll(batch)
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		later := d.pending
		d.pending = batch
		for _, c := range later {
			d.add(c)
		}
	}
	return err
}

// storeAll stores large snapshots first, in their own transactions.
func (d *Dir) storeAll(batch []Update) error {
	snapshots := make([][]entries.Entry, len(batch))
	for i, c := range batch {
		if c.Snapshot == nil {
			continue
		}
		all := entries.Of(c.Snapshot())
		if c.Configured {
			all = append(all, entries.Entry{Key: configuredKey, Value: &emptypb.Empty{}})
		}
		if len(all) <= partEntries {
			snapshots[i] = all
		} else if err := d.stage(c.Fragment.String(), all); err != nil {
			return fmt.Errorf("store fragment %s: %w", c.Fragment, err)
		}
	}
	return d.store.Update(func(tx *store.Tx) error {
		for i, c := range batch {
			if err := c.store(tx, snapshots[i]); err != nil {
				return fmt.Errorf("store fragment %s: %w", c.Fragment, err)
			}
		}
		return nil
	})
}

// stage stores a large snapshot beside the fragments, in place of an earlier one. A transaction
// holds its entries in memory and delays the one with the record, so stage uses several.
func (d *Dir) stage(id string, all []entries.Entry) error {
	for part := range slices.Chunk(all, partEntries) {
		first := &part[0] == &all[0]
		err := d.store.Update(func(tx *store.Tx) error {
			staged, err := tx.Bucket(stagedBucket)
			if err == nil && first {
				err = staged.DeleteBucket(id)
			}
			if err != nil {
				return err
			}
			return change(staged, id, func(s *entries.Stored) { s.PutAll(part) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// store writes a change. Without Patch, a nil snapshot was staged.
func (c *Update) store(tx *store.Tx, snapshot []entries.Entry) error {
	id := c.Fragment.String()
	live, err := tx.Bucket(fragmentsBucket)
	if err != nil {
		return err
	}
	if c.Patch != nil {
		return change(live, id, func(s *entries.Stored) {
			for _, t := range c.Patch().GetTables() {
				entries.Patch(s, t)
			}
		})
	}
	if err := live.DeleteBucket(id); err != nil || c.Snapshot == nil {
		return err
	}
	if snapshot != nil {
		return change(live, id, func(s *entries.Stored) { s.PutAll(snapshot) })
	}
	staged, err := tx.Bucket(stagedBucket)
	if err != nil {
		return err
	}
	return staged.MoveBucket(id, live)
}

func change(parent *store.Bucket, id string, f func(*entries.Stored)) error {
	b, err := parent.Obtain(id)
	if err != nil {
		return err
	}
	s := &entries.Stored{Bucket: b}
	f(s)
	return s.Err
}

func (c *Contents) readFragments(tx *store.Tx) error {
	b, err := tx.Bucket(fragmentsBucket)
	if err != nil {
		return err
	}
	for _, id := range b.Names() {
		publisher, name, _ := strings.Cut(id, "/")
		f := Fragment{Key: desired.Key{Publisher: publisher, Name: name}, Content: &weftv1.Fragment{}}
		for key, value := range b.Bucket(id).From("") {
			if key == configuredKey {
				f.Configured = true
			} else if err := entries.Add(f.Content, key, value); err != nil {
				return fmt.Errorf("fragment %s: %w", id, err)
			}
		}
		c.Fragments = append(c.Fragments, f)
	}
	return nil
}
