package statedir

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/sys/unix"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/conntrack"
)

// The kinds of data that are counted when they cannot be read or written.
const (
	KindRecord  = "record"
	KindDurable = "durable"
	KindFlows   = "flows"
)

// The buckets of the store, and the keys of the first two. See doc.go.
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

// Dir is what a state directory has for the start of the aggregator. Call Load before any other method.
type Dir struct {
	store *store.Store
	log   *slog.Logger
	task  *store.Task

	// record is the text of the record that is stored; nil if that is unknown.
	// Only the goroutine that saves records uses it, and reserved.
	record []byte
	// reserved is the greatest revision that the database allows to be used.
	reserved uint64

	mu sync.Mutex
	// pending has the changes that are not stored yet.
	pending []Change
}

// Contents is what a state directory holds.
type Contents struct {
	// Revision is at least the last revision that was used.
	Revision uint64
	// Record is the record of fragments. Trusted is false if there is none, or if
	// the kernel may hold what it does not describe; then it has only the names
	// and lifetimes of fragments.
	Record  Record
	Trusted bool
	// Fragments are the durable fragments, by publisher and name.
	Fragments []Fragment
	// Flows are the destinations that SaveFlows stored last.
	Flows []conntrack.Change
	// Killed is true if the process that used the directory last was killed or crashed.
	Killed bool
}

// Fragment is a durable fragment with its whole content.
type Fragment struct {
	Key     desired.Key
	Content *weftv1.Fragment
	// Configured is true if its publisher was in the configuration when it was stored. It
	// is false for a fragment of an administrator under another name.
	Configured bool
}

// New returns a Dir on a store that is not loaded yet.
func New(s *store.Store, log *slog.Logger) *Dir {
	d := &Dir{store: s, log: log}
	const lost = "record is lost: elements without an owner stay until their publishers return"
	s.Register(store.Part{Bucket: recordBucket, Kind: KindRecord, Lost: lost})
	s.Register(store.Part{Bucket: sharesBucket, Kind: KindRecord, Lost: lost})
	s.Register(store.Part{Bucket: fragmentsBucket, Kind: KindDurable, Single: true, Lost: "durable fragment is lost"})
	s.Register(store.Part{Bucket: flowsBucket, Kind: KindFlows, Lost: "noted flows are lost"})
	d.task = s.NewTask(KindDurable, "durable fragments are not stored", "durable fragments are stored again", d.write)
	return d
}

// Load loads the store, and returns what the directory holds.
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
		// Commits may have followed the record, which could not be marked.
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

// lost reports data that cannot be used.
func (d *Dir) lost(kind string, err error) {
	d.store.Failed(kind)
	d.log.Error(kind+" is lost: elements without an owner stay until their publishers return", "error", err)
}

// read reads everything.
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

// distrust removes from the contents what must not be relied on if the record may
// be older than the kernel: the names and lifetimes of fragments are kept, and no
// element is given to the wrong one.
func (c *Contents) distrust() {
	c.Trusted = false
	for i, f := range c.Record.Desired.Fragments {
		c.Record.Desired.Fragments[i] = desired.FragmentRecord{Publisher: f.Publisher, Name: f.Name, Lifetime: f.Lifetime, Expires: f.Expires}
	}
}

// SaveFlows replaces the stored destinations whose flows are to be removed.
func (d *Dir) SaveFlows(deserted []conntrack.Change) error {
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

// put puts a value into a part.
func put(tx *store.Tx, bucket, key string, value []byte) error {
	b, err := tx.Bucket(bucket)
	if err != nil {
		return err
	}
	return b.Put(key, value)
}

func putRevision(tx *store.Tx, revision uint64) error {
	return put(tx, recordBucket, revisionKey, binary.BigEndian.AppendUint64(nil, revision))
}

// Room tries to reserve the room for a fragment whose messages have n bytes, and
// returns why the directory has none. Entries may be larger than messages, because
// they hold texts in full.
func (d *Dir) Room(n int) error { return d.store.Room(2*int64(n) + minRoom) }

// minRoom is the room for the pages that a small change rewrites.
const minRoom = 1 << 15

// Close closes the store, after all queues are written once more.
func (d *Dir) Close() error { return d.store.Close() }
