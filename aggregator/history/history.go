package history

import (
	"errors"
	"fmt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/retry"
	"github.com/weft-proxy/weft/aggregator/store"
)

const (
	DefaultMaxEntries = 10_000
	DefaultMaxBytes   = 16 << 20
	// MaxContent is the largest content of a fragment to keep, in bytes.
	MaxContent = 512 << 10
)

type Config struct {
	// Store is not loaded yet. Without a directory no commit is recorded.
	Store *store.Store
	// If MaxEntries or MaxBytes is 0, no commit is recorded.
	MaxEntries int
	MaxBytes   int64
	// Lost gets, in any goroutine, the number of commits without an entry of their own.
	Lost func(commits int)
}

type Commit struct {
	// Revision belongs to the recorder.
	Revision *weftv1.Revision
	Updates  []Update
	// Present, if not nil, has all fragments. Others in the history were lost, and become the
	// changes of this commit.
	Present map[desired.Key]bool
	// Empty is true if the kernel had everything. The commit is recorded only if content changed.
	Empty bool
	// Patient commits may be written half a minute later.
	Patient bool
}

// Update is a committed update of a fragment with at most one of Withdrawn, Snapshot and Patch; without any
// the content becomes unknown.
type Update struct {
	Fragment  desired.Key
	Existed   bool
	Withdrawn bool
	// Snapshot returns the whole content, Patch the difference, at each attempt to write the
	// commit.
	Snapshot func() *weftv1.Fragment
	Patch    func() *weftv1.Patch
	// Weight is about the size in bytes.
	Weight int
}

// Kind is the kind of data for Store.Failed.
const Kind = "history"

const bucket = "history"

// Recorder writes and reads the history.
type Recorder struct {
	cfg  Config
	task *retry.Task
	queue
}

// New returns a Recorder on a store that is not loaded yet.
func New(cfg Config) *Recorder {
	r := &Recorder{cfg: cfg}
	cfg.Store.Register(store.Part{Bucket: bucket, Kind: Kind, Lost: "history is lost: a new one begins"})
	r.task = cfg.Store.NewTask(Kind, "history is not recorded: commits go on", "history is recorded again", r.write)
	return r
}

func (r *Recorder) Enabled() bool {
	return r.cfg.Store.Enabled() && r.cfg.MaxEntries > 0 && r.cfg.MaxBytes > 0
}

// Failing returns why the history could not be written, or nil.
func (r *Recorder) Failing() error { return r.task.Err() }

// view does not call f before the first recorded commit.
func (r *Recorder) view(f func(*tables) error) error {
	err := r.cfg.Store.View(func(tx *store.Tx) error {
		root, err := tx.Bucket(bucket)
		if err != nil || len(root.Names()) == 0 {
			return err
		}
		t, err := open(tx)
		if err != nil {
			return err
		}
		return f(&t)
	})
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrNotOpen) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
