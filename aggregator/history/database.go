package history

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/weft-proxy/weft/aggregator/store"
)

// databaseName is the file in Config.Dir, and damagedSuffix what is added to a damaged one.
const (
	databaseName  = "history.db"
	damagedSuffix = ".damaged"
)

// allocSize is by how much the file grows, in bytes.
const allocSize = 1 << 20

// version is that of the format. A database of a later one is left as it is, and one of firstVersion
// is replaced.
const (
	version      = 2
	firstVersion = "1"
)

// The buckets and keys. See doc.go.
var (
	metaBucket       = []byte("meta")
	publishersBucket = []byte("publishers")
	logBucket        = []byte("log")
	beforeBucket     = []byte("before")
	contentBucket    = []byte("content")

	versionKey   = []byte("version")
	lineageKey   = []byte("lineage")
	forgottenKey = []byte("forgotten")
	entriesKey   = []byte("entries")
	logKey       = []byte("logSize")
	contentKey   = []byte("contentSize")
)

// open opens the database, or makes a new one in place of one that is damaged. Only Run
// calls it.
//
// Possible errors: store.ErrVersion, those of the file system.
func (r *Recorder) open() error {
	if r.db.Load() != nil {
		return nil
	}
	db, err := r.openDatabase()
	if errors.Is(err, store.ErrDamaged) {
		if err := r.moveDamaged(err); err != nil {
			return err
		}
		db, err = r.openDatabase()
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", r.path(), err)
	}
	r.db.Store(db)
	return nil
}

func (r *Recorder) path() string { return filepath.Join(r.cfg.Dir, databaseName) }

// moveDamaged renames a database that cannot be used.
func (r *Recorder) moveDamaged(cause error) error {
	to := r.path() + damagedSuffix
	r.cfg.Failed()
	r.cfg.Logger.Error("history is lost: a new one begins", "error", cause, "renamed", to)
	return store.Rename(r.path(), to)
}

// openDatabase maps twice MaxBytes at once: while bbolt maps more of a file, it waits for all
// readers.
func (r *Recorder) openDatabase() (*bolt.DB, error) {
	db, err := store.Open(r.path(), &bolt.Options{InitialMmapSize: int(2*r.cfg.MaxBytes) + allocSize})
	if err != nil {
		return nil, err
	}
	db.AllocSize = allocSize
	if err = store.Guarded(func() error { return db.Update(prepare) }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// prepare makes the buckets of a new database, and checks the version of another before it
// changes that.
func prepare(tx *bolt.Tx) error {
	if meta := tx.Bucket(metaBucket); meta != nil && meta.Get(versionKey) != nil {
		if string(meta.Get(versionKey)) == firstVersion {
			return fmt.Errorf("%w: it has the format of an earlier weft", store.ErrDamaged)
		}
		if err := store.CheckVersion(meta.Get(versionKey), version, version); err != nil {
			return fmt.Errorf("%w, or move the file away", err)
		}
	}
	for _, name := range [][]byte{metaBucket, publishersBucket} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return tx.Bucket(metaBucket).Put(versionKey, []byte(strconv.Itoa(version)))
}

// drop closes a database that turned out to be damaged, and renames it.
func (r *Recorder) drop(cause error) error {
	return errors.Join(store.Guarded(r.db.Swap(nil).Close), r.moveDamaged(cause))
}

// view makes a transaction that reads.
//
// Possible errors: ErrUnavailable.
func (r *Recorder) view(f func(*bolt.Tx) error) error {
	db := r.db.Load()
	if db == nil {
		return ErrUnavailable
	}
	err := store.Guarded(func() error { return db.View(f) })
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, berrors.ErrDatabaseNotOpen) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
