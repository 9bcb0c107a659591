package history

import (
	"log/slog"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

const (
	// DefaultMaxEntries and DefaultMaxBytes are the bounds of a history unless the operator
	// names others.
	DefaultMaxEntries = 10_000
	DefaultMaxBytes   = 16 << 20
	// MaxContent is the most content of a fragment that is kept, in bytes.
	MaxContent = 512 << 10
)

// Config describes a Recorder.
type Config struct {
	// Dir is the directory of the database. It must exist when Run begins. If it is empty,
	// nothing is recorded.
	Dir string
	// MaxEntries and MaxBytes bound what is kept. If one is 0, nothing is recorded.
	MaxEntries int
	MaxBytes   int64
	// Retry is the time between attempts to write; it must be positive.
	Retry time.Duration
	// Logger gets what goes wrong.
	Logger *slog.Logger
	// Failed is called for each attempt to open or write the database that fails, and Lost
	// with the number of commits whose entries are lost. Any goroutine may call them.
	Failed func()
	Lost   func(commits int)
}

// Commit is what the recorder is told about a commit.
type Commit struct {
	// Revision is the entry. It belongs to the recorder.
	Revision *weftv1.Revision
	// Changes are the updates of fragments, in their order.
	Changes []Change
	// Present, if it is not nil, has all fragments that there are: those that have content in
	// the history and are not in it were lost, and become the changes of this commit.
	Present map[desired.Key]bool
	// Lineage is compared with that of the commit before which had one. If it is another, commits were made that
	// are not in the history: then the content of all fragments is not known before their next snapshot.
	Lineage string
	// Empty is true if the kernel had everything already. The commit is recorded only if the
	// content of a fragment is different.
	Empty bool
	// Patient is true if the commit may be written half a minute later: a crash may lose it.
	Patient bool
}

// Change is an update of a fragment. It has at most one of Withdrawn, Snapshot and Patch;
// without them the content is not known afterwards.
type Change struct {
	Fragment desired.Key
	// Existed is true if the fragment was there before.
	Existed bool
	// Withdrawn is true if it is not there any more.
	Withdrawn bool
	// Snapshot returns the whole content, Patch what is different. Run calls them, after a
	// failure again.
	Snapshot func() *weftv1.Fragment
	Patch    func() *weftv1.Patch
	// Weight is about the size of the update in bytes.
	Weight int
}

// Recorder is a history.
type Recorder struct {
	cfg Config

	queue
	// db is nil while the database is not open.
	db atomic.Pointer[bolt.DB]
}

// New returns a Recorder. It does nothing until Run.
func New(cfg Config) *Recorder {
	return &Recorder{cfg: cfg, queue: queue{nudge: make(chan struct{}, 1)}}
}

// Enabled reports whether commits are recorded.
func (r *Recorder) Enabled() bool {
	return r.cfg.Dir != "" && r.cfg.MaxEntries > 0 && r.cfg.MaxBytes > 0
}
