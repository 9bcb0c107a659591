package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/weft-proxy/weft/aggregator/retry"
	"github.com/weft-proxy/weft/aggregator/trusted"
)

var (
	// ErrDamaged means that a part of the database is not as written.
	ErrDamaged = errors.New("database is damaged")
	// ErrInUse means that another process has the database open.
	ErrInUse = errors.New("state directory is in use by another process")
	// ErrNotOpen is returned before Load and after Close.
	ErrNotOpen = errors.New("state directory is not open")
)

type Config struct {
	// Path is the directory, made if missing. An empty Path stores no data.
	Path string
	// Retry is the positive time between attempts of a failed Task.
	Retry time.Duration
	// Logger gets losses and failures.
	Logger *slog.Logger
	// Failed gets, in any goroutine, the kind of data of each failed read or write.
	Failed func(kind string)
	// Fault, if not nil, returns errors of transactions for tests.
	Fault func() error
}

// Part is a top-level bucket. Kind is for Config.Failed.
type Part struct {
	Bucket string
	Kind   string
	// Single is true for a part of inner buckets only: each is lost alone. Other parts are lost as
	// a whole. Lost is the log message of a loss.
	Single bool
	Lost   string
	// Staging is a bucket whose inner buckets are moved to Bucket, or "". It does not survive a start.
	Staging string
}

type Store struct {
	cfg   Config
	parts []Part
	tasks []*retry.Task

	stop    context.CancelFunc
	running sync.WaitGroup
	done    chan struct{}

	// db is nil before Load and after Close.
	db atomic.Pointer[bolt.DB]
	// outdated is true while the file is named outdatedName.
	outdated atomic.Bool
	killed   bool
	lost     map[string]bool

	// mu is held by writers. It guards unwritten (the reason for a database in memory) and replaced
	// (the present file is damaged).
	mu        sync.Mutex
	unwritten error
	replaced  bool
}

// New returns a Store, without I/O.
func New(cfg Config) *Store {
	return &Store{cfg: cfg, lost: make(map[string]bool), done: make(chan struct{})}
}

func (s *Store) Enabled() bool { return s.cfg.Path != "" }

func (s *Store) Register(p Part) { s.parts = append(s.parts, p) }

func (s *Store) Failed(kind string) { s.cfg.Failed(kind) }

// Load reads the directory and copies the database. It logs and counts lost data, and renames files
// of another version. It succeeds without write access: see Unwritten.
//
// Possible errors: ErrInUse, trusted.ErrUnsafe, trusted.ErrLink.
func (s *Store) Load() error {
	if !s.Enabled() {
		return nil
	}
	if err := s.makeDir(); errors.Is(err, trusted.ErrUnsafe) || errors.Is(err, trusted.ErrLink) {
		return fmt.Errorf("state directory: %w", err)
	}
	source, losses, err := s.read()
	if err != nil {
		return fmt.Errorf("state directory %s: %w", s.cfg.Path, err)
	}
	// Not before read, because another process may have the directory.
	removeTemporary(s.cfg.Path)
	s.replaced = len(losses) > 0
	db, more, renamed, err := s.create(source)
	if s.unwritten = err; err != nil {
		s.cfg.Logger.Error("state directory cannot be written: every write tries again", "path", s.cfg.Path, "error", err)
		if db, more, err = s.createInMemory(source); err != nil {
			return fmt.Errorf("copy the database to memory: %w", err)
		}
	}
	for _, l := range append(losses, more...) {
		s.lost[l.part.Bucket] = true
		s.cfg.Failed(l.part.Kind)
		s.cfg.Logger.Error(l.part.Lost, "error", l.err, "renamed", renamed)
	}
	if source != nil {
		_ = guarded(source.Close)
	}
	s.db.Store(db)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	for _, t := range s.tasks {
		s.running.Go(func() { t.Run(ctx, context.Background()) })
	}
	return nil
}

// Lost reports whether Load found a loss in a part.
func (s *Store) Lost(bucket string) bool { return s.lost[bucket] }

// Unwritten returns why the directory could not be written, or nil.
func (s *Store) Unwritten() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unwritten
}

// Killed reports whether the last process was killed or crashed, without a reboot since.
func (s *Store) Killed() bool { return s.killed }

const (
	databaseName = "state.db"
	outdatedName = "state.db.outdated"
)

func (s *Store) file() string {
	if s.outdated.Load() {
		return filepath.Join(s.cfg.Path, outdatedName)
	}
	return filepath.Join(s.cfg.Path, databaseName)
}

// Outdated reports whether the record is older than the kernel.
func (s *Store) Outdated() bool { return s.outdated.Load() }

// SetOutdated marks the record, by the name of the database.
func (s *Store) SetOutdated(outdated bool) error {
	if s.outdated.Load() == outdated {
		return nil
	}
	return s.locked(func() error {
		from := s.file()
		s.outdated.Store(outdated)
		if err := rename(from, s.file()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.outdated.Store(!outdated)
			return fmt.Errorf("rename database: %w", err)
		}
		return nil
	})
}

// read opens the present database. Source may be nil. If there are files of another version, that version ran
// last, and the database is older than its rules: all files are set aside. The only error is ErrInUse.
func (s *Store) read() (source *bolt.DB, losses []loss, err error) {
	if other := formerFiles(s.cfg.Path); len(other) > 0 {
		s.replace(append(other, present(s.cfg.Path, databaseName, outdatedName)...), errOtherFormat)
		return nil, nil, nil
	}
	for _, outdated := range []bool{false, true} {
		s.outdated.Store(outdated)
		if source, losses, err = s.readFile(); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	switch {
	case err == nil || errors.Is(err, ErrInUse):
		return source, losses, err
	case errors.Is(err, errOtherFormat):
		s.replace([]string{s.file()}, err)
		fallthrough
	case errors.Is(err, fs.ErrNotExist):
		s.outdated.Store(false)
		return nil, nil, nil
	}
	return nil, lossOfAll(s.parts, fmt.Errorf("read database %s: %w", filepath.Base(s.file()), err)), nil
}

// loss is a damaged part, or a damaged bucket of a Single part.
type loss struct {
	part Part
	err  error
}

func lossOfAll(parts []Part, err error) (losses []loss) {
	kinds := make(map[string]bool)
	for _, p := range parts {
		if !kinds[p.Kind] {
			kinds[p.Kind] = true
			losses = append(losses, loss{p, err})
		}
	}
	return losses
}

// readFile opens a database, and checks its format and meta data.
func (s *Store) readFile() (source *bolt.DB, losses []loss, err error) {
	source, err = open(s.file(), &bolt.Options{ReadOnly: true})
	if err != nil {
		return nil, nil, err
	}
	if err = guarded(func() error { return source.View(s.checkFormat) }); err != nil {
		return nil, nil, errors.Join(err, guarded(source.Close))
	}
	if err := checkMeta(s.file(), int64(source.Info().PageSize)); err != nil {
		losses = append(losses, lossOfAll(s.parts, err)...)
	}
	return source, losses, nil
}

// replace renames files of another version, and logs the loss.
func (s *Store) replace(files []string, cause error) {
	var renamed []string
	var errs []error
	for _, path := range files {
		to, err := quarantine(path, otherSuffix)
		renamed, errs = append(renamed, to), append(errs, err)
	}
	for _, l := range lossOfAll(s.parts, cause) {
		s.cfg.Failed(l.part.Kind)
	}
	s.cfg.Logger.Error("the state directory has the format of another version of weft: a new database begins. The rules in the kernel stay. "+
		"Durable fragments are no longer stored and do not survive a reboot: apply them again. Updates that wait for a confirmation stay in force. The history is empty",
		"path", s.cfg.Path, "cause", cause, "renamed", renamed, "error", errors.Join(errs...))
}

// View makes a transaction that reads.
//
// Possible errors: ErrNotOpen, ErrDamaged, f's.
func (s *Store) View(f func(*Tx) error) error {
	db := s.db.Load()
	if db == nil {
		return ErrNotOpen
	}
	err := guarded(func() error { return db.View(func(tx *bolt.Tx) error { return f(s.newTx(tx)) }) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrNotOpen
	}
	return err
}

// Room returns an error if the directory has no room for n bytes.
func (s *Store) Room(n int64) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	return reserve(s.cfg.Path, n)
}
