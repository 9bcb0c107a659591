package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/sys/unix"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/retry"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/conntrack"
)

// The kinds of data for Store.Failed.
const (
	KindRecord  = "record"
	KindDurable = "durable"
	KindFlows   = "flows"
)

const (
	recordBucket    = "record"
	flowsBucket     = "flows"
	sharesBucket    = "shares"
	fragmentsBucket = "fragments"
	stagedBucket    = "staged"

	revisionKey = "revision"
	recordKey   = "record"
	flowsKey    = "flows"
)

// Dir is a state directory for the start of the aggregator. Load comes first.
type Dir struct {
	store *store.Store
	log   *slog.Logger
	task  *retry.Task

	// record is the stored text, or nil if unknown. It and reserved belong to the goroutine that
	// saves records.
	record []byte
	// reserved is the greatest revision allowed to a commit.
	reserved uint64

	mu      sync.Mutex
	pending []Update
}

type Contents struct {
	// Revision is at least the last used revision.
	Revision uint64
	// Trusted is false if the kernel may hold unrecorded content. Record then has only names,
	// lifetimes and expiry times of fragments.
	Record    Record
	Trusted   bool
	Fragments []Fragment
	// Flows are from the last SaveFlows.
	Flows []conntrack.Stale
	// Killed is Store.Killed.
	Killed bool
}

type Fragment struct {
	Key     desired.Key
	Content *weftv1.Fragment
	// Configured is true if the configuration had the publisher at the commit, false for a fragment
	// of an administrator under another name.
	Configured bool
}

// New returns a Dir on a store that is not loaded yet.
func New(s *store.Store, log *slog.Logger) *Dir {
	d := &Dir{store: s, log: log}
	const lost = "record is lost: elements without an owner stay until their publishers return"
	s.Register(store.Part{Bucket: recordBucket, Kind: KindRecord, Lost: lost})
	s.Register(store.Part{Bucket: sharesBucket, Kind: KindRecord, Lost: lost})
	s.Register(store.Part{Bucket: fragmentsBucket, Staging: stagedBucket, Kind: KindDurable, Single: true, Lost: "durable fragment is lost"})
	s.Register(store.Part{Bucket: flowsBucket, Kind: KindFlows, Lost: "noted flows are lost"})
	d.task = s.NewTask(KindDurable, "durable fragments are not stored", "durable fragments are stored again", d.write)
	return d
}

// Load loads the store, and returns its contents.
//
// Possible errors: store.ErrInUse, trusted.ErrUnsafe, trusted.ErrLink.
func (d *Dir) Load() (*Contents, error) {
	c := &Contents{}
	if err := d.store.Load(); err != nil || !d.store.Enabled() {
		return c, err
	}
	if err := d.store.View(c.read); err != nil {
		d.lost(KindRecord, err)
		c.distrust()
		return c, nil
	}
	d.reserved, c.Killed = c.Revision, d.store.Killed()
	var err error
	switch {
	case !c.Trusted:
	case d.store.Lost(recordBucket) || d.store.Lost(sharesBucket):
		c.Trusted = false
	case d.store.Outdated():
		err = errors.New("the last record could not be stored")
	default:
		// The last process may have failed to mark the record, except on a full disk.
		if err = d.store.Unwritten(); errors.Is(err, unix.ENOSPC) {
			err = nil
		}
	}
	if err != nil {
		d.lost(KindRecord, err)
		c.Trusted = false
	}
	if !c.Trusted {
		c.distrust()
	}
	return c, nil
}

func (d *Dir) lost(kind string, err error) {
	d.store.Failed(kind)
	d.log.Error(kind+" is lost: elements without an owner stay until their publishers return", "error", err)
}

func (c *Contents) read(tx *store.Tx) error {
	record, err := tx.Bucket(recordBucket)
	if err != nil {
		return err
	}
	c.Revision = record.Number(revisionKey)
	if text := record.Get(recordKey); text != nil {
		if err := json.Unmarshal(text, &c.Record); err != nil {
			return err
		}
		c.Trusted = readShares(tx, &c.Record.Desired) == nil && !c.Record.Partial
	}
	flows, err := tx.Bucket(flowsBucket)
	if err != nil {
		return err
	}
	if text := flows.Get(flowsKey); text != nil {
		if err := json.Unmarshal(text, &c.Flows); err != nil {
			return err
		}
	}
	return c.readFragments(tx)
}

// distrust keeps only names, lifetimes and expiry times of fragments: an old record must not give
// elements to a wrong fragment.
func (c *Contents) distrust() {
	c.Trusted = false
	for i, f := range c.Record.Desired.Fragments {
		c.Record.Desired.Fragments[i] = desired.FragmentRecord{Publisher: f.Publisher, Name: f.Name, Lifetime: f.Lifetime, Expires: f.Expires}
	}
}

// SaveFlows replaces the stored destinations with flows to remove.
func (d *Dir) SaveFlows(deserted []conntrack.Stale) error {
	var text []byte
	if len(deserted) > 0 {
		var err error
		if text, err = json.Marshal(deserted); err != nil {
			return fmt.Errorf("store flows: %w", err)
		}
	}
	err := d.store.Update(func(tx *store.Tx) error { return put(tx, flowsBucket, flowsKey, text) })
	if err != nil {
		return fmt.Errorf("store flows: %w", err)
	}
	return nil
}

func put(tx *store.Tx, bucket, key string, value []byte) error {
	b, err := tx.Bucket(bucket)
	if err != nil {
		return err
	}
	return b.Put(key, value)
}

func putRevision(tx *store.Tx, revision uint64) error {
	b, err := tx.Bucket(recordBucket)
	if err != nil {
		return err
	}
	return b.PutNumber(revisionKey, revision)
}

// Room returns an error without room for a fragment with messages of n bytes. Entries may be
// larger: their texts are in full.
func (d *Dir) Room(n int) error { return d.store.Room(2*int64(n) + minRoom) }

// minRoom is enough bytes of pages for a small change.
const minRoom = 1 << 15

// Close writes all queues once more, and closes the store.
func (d *Dir) Close() error { return d.store.Close() }
