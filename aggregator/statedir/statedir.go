package statedir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/aggregator/trusted"
	"github.com/weft-proxy/weft/conntrack"
)

// Kind is a kind of data in a state directory.
type Kind string

// The kinds of data.
const (
	KindRecord  Kind = "record"
	KindDurable Kind = "durable"
	KindFlows   Kind = "flows"
)

// Config describes a Dir.
type Config struct {
	// Path is the directory, which is created if it is missing. If it is empty,
	// there is nothing to load, records are not stored, and nothing else may be.
	Path string
	// Retry is the time between attempts to store a fragment that could not be
	// stored; it must be positive.
	Retry time.Duration
	// Logger gets what is lost and what is not stored.
	Logger *slog.Logger
	// Failed is called for each read and write that fails, by any goroutine that uses
	// the Dir.
	Failed func(Kind)
}

// Dir is a state directory. Call Load before any other method.
type Dir struct {
	path   string
	retry  time.Duration
	log    *slog.Logger
	failed func(Kind)

	// mu guards the fields up to pending. It is never held during a transaction.
	mu sync.Mutex
	// db is nil while the database cannot be created.
	db *bolt.DB
	// outdated is true while the database has the name which says that its
	// record is older than the kernel.
	outdated bool
	// initial is what Load read, until the database is created with it.
	initial *Contents

	// record is the text of the record that is stored; nil if that is unknown.
	// Only the goroutine that saves records uses it, and reserved.
	record []byte
	// reserved is the greatest revision that the database allows to be used.
	reserved uint64

	queue
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
	// recorded is true if there is a record.
	recorded bool
	// Fragments are the durable fragments, by publisher and name.
	Fragments []Fragment
	// Flows are the destinations that SaveFlows stored last.
	Flows []conntrack.Change
	// Lineage is the same at each start of versions of weft that know it, as long as no other version has
	// started with the directory, and the database was not lost.
	Lineage string
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

// ErrNotOpen is returned by writes before Load and after Close.
var ErrNotOpen = errors.New("state directory is not open")

// errOutdated means that commits followed the record which is stored.
var errOutdated = errors.New("the last record could not be stored")

// New returns a Dir. It does nothing until Load.
func New(c Config) *Dir {
	d := &Dir{path: c.Path, retry: c.Retry, log: c.Logger, failed: c.Failed}
	d.nudge = make(chan struct{}, 1)
	return d
}

// Load reads the directory, and writes what it holds to a new database. Data that
// cannot be read is logged and counted: a damaged database is renamed, and the new
// one has the rest. If the directory cannot be written Load succeeds, and every
// write tries again.
//
// Possible errors: store.ErrVersion, store.ErrInUse, trusted.ErrUnsafe, trusted.ErrLink.
func (d *Dir) Load() (*Contents, error) {
	if d.path == "" {
		return &Contents{}, nil
	}
	err := makeDir(d.path)
	switch {
	case errors.Is(err, trusted.ErrUnsafe) || errors.Is(err, trusted.ErrLink):
		return nil, fmt.Errorf("state directory: %w", err)
	case err != nil:
		d.lost(KindRecord, fmt.Errorf("make state directory: %w", err))
		return &Contents{}, nil
	}
	removeTemporary(d.path)
	c, err := d.read()
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", d.path, err)
	}
	if c.Lineage == "" {
		c.Lineage = rand.Text()
	}
	d.reserved = c.Revision
	c.Killed = d.begin()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.initial = c
	if err := d.open(); err != nil {
		d.log.Error("state directory cannot be written: every write tries again", "path", d.path, "error", err)
		if c.Trusted && !errors.Is(err, unix.ENOSPC) {
			// Commits may have followed the record, which could not be marked.
			c.distrust()
			d.lost(KindRecord, fmt.Errorf("the record may be outdated: %w", err))
		}
	}
	return c, nil
}

// read returns the content of the database.
func (d *Dir) read() (*Contents, error) {
	for _, outdated := range []bool{false, true} {
		d.outdated = outdated
		c, damaged, err := readDatabase(d.file())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d.moveDamaged(d.file(), damaged)
		if d.outdated && c.Trusted {
			c.distrust()
			d.lost(KindRecord, errOutdated)
		}
		return c, nil
	}
	d.outdated = false
	return &Contents{}, nil
}

// moveDamaged renames a file if it is damaged, and reports what is lost.
func (d *Dir) moveDamaged(path string, damaged []damage) {
	if len(damaged) == 0 {
		return
	}
	renamed, err := moveDamaged(path)
	if err != nil {
		d.log.Error("damaged file is not renamed", "file", path, "error", err)
	}
	for _, p := range damaged {
		d.lost(p.kind, fmt.Errorf("%w: it was renamed to %s", p.err, renamed))
	}
}

// lost reports data that could not be read.
func (d *Dir) lost(kind Kind, err error) {
	d.failed(kind)
	switch kind {
	case KindRecord:
		d.log.Error("record is lost: elements without an owner stay until their publishers return", "error", err)
	case KindDurable:
		d.log.Error("durable fragment is lost", "error", err)
	default:
		d.log.Error("data of the state directory is lost", "kind", kind, "error", err)
	}
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

// The names of the database. The second one says that its record is older than
// the kernel, and is given by a rename, which needs no room on a full disk.
const (
	databaseName = "weft.db"
	outdatedName = "weft.db.outdated"
)

// file returns the path of the database.
func (d *Dir) file() string {
	if d.outdated {
		return filepath.Join(d.path, outdatedName)
	}
	return filepath.Join(d.path, databaseName)
}

// setOutdated renames the database to say whether its record is outdated.
func (d *Dir) setOutdated(outdated bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.outdated == outdated {
		return nil
	}
	from := d.file()
	d.outdated = outdated
	if err := store.Rename(from, d.file()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.outdated = !outdated
		return fmt.Errorf("rename database: %w", err)
	}
	return nil
}

// open creates the database, if it has not been created since Load. It must be
// called with mu held.
func (d *Dir) open() error {
	switch {
	case d.db != nil:
		return nil
	case d.initial == nil:
		return ErrNotOpen
	}
	db, err := createDatabase(d.file(), d.initial)
	if err != nil {
		return err
	}
	d.db, d.initial = db, nil
	return nil
}

// update makes one transaction.
func (d *Dir) update(f func(*bolt.Tx) error) error {
	d.mu.Lock()
	err := d.open()
	db := d.db
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return store.Guarded(func() error { return db.Update(f) })
}

// Room tries to reserve the room for a fragment whose messages have n bytes, and
// returns why the directory has none. Entries may be larger than messages, because
// they hold texts in full.
func (d *Dir) Room(n int) error {
	if err := makeDir(d.path); err != nil {
		return err
	}
	return reserve(d.path, 2*int64(n)+minRoom)
}

// minRoom is the room for the pages that a small change rewrites.
const minRoom = 1 << 15

// Close closes the database. It is called after Run has ended; what is queued then is
// lost.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.db == nil {
		return nil
	}
	db := d.db
	d.db = nil
	// Without the note of begin an error is right, and with it the next start logs a line too many.
	_ = os.Remove(filepath.Join(d.path, runningFile))
	return db.Close()
}
