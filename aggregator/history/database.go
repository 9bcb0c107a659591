package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/weft-proxy/weft/aggregator/trusted"
)

// databaseName is the file in Config.Dir, and damagedSuffix what is added to a damaged one.
const (
	databaseName  = "history.db"
	damagedSuffix = ".damaged"
)

// lockTimeout bounds how long the database of another process is waited for.
const lockTimeout = 10 * time.Second

// minSize is the least size of a database, in bytes: its two meta pages. bbolt has no error of
// its own for a shorter file.
var minSize = int64(2 * os.Getpagesize())

// allocSize is by how much the file grows, in bytes.
const allocSize = 1 << 20

// version is that of the format. A database of another one is left as it is.
const version = "1"

// The buckets and the keys of the first one. See doc.go.
var (
	metaBucket    = []byte("meta")
	logBucket     = []byte("log")
	beforeBucket  = []byte("before")
	contentBucket = []byte("content")
	// publishersBucket is not in a database of a weft that has no shares.
	publishersBucket = []byte("publishers")

	versionKey   = []byte("version")
	forgottenKey = []byte("forgotten")
	entriesKey   = []byte("entries")
	logKey       = []byte("log")
	contentKey   = []byte("content")
	lineageKey   = []byte("lineage")
	commonKey    = []byte("common")
)

// guarded calls f and returns a panic as an error: bbolt panics if it meets a damaged page,
// and a page beyond the end of the file is a fault.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	return f()
}

// open opens the database, or makes a new one in place of one that is damaged. Only Run
// calls it.
//
// Possible errors: errVersion, those of the file system.
func (r *Recorder) open() error {
	if r.db != nil {
		return nil
	}
	path := filepath.Join(r.cfg.Dir, databaseName)
	db, err := r.openDatabase(path)
	if isDamage(err) {
		if err := r.moveDamaged(path, err); err != nil {
			return err
		}
		db, err = r.openDatabase(path)
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	r.dbMu.Lock()
	defer r.dbMu.Unlock()
	r.db = db
	return nil
}

// moveDamaged renames a database that cannot be used.
func (r *Recorder) moveDamaged(path string, cause error) error {
	r.cfg.Failed()
	r.cfg.Logger.Error("history is lost: a new one begins", "error", cause, "renamed", path+damagedSuffix)
	return os.Rename(path, path+damagedSuffix)
}

// isDamage reports whether an error means that the file is damaged. Another version is not damage.
func isDamage(err error) bool {
	return errors.Is(err, errDamaged) || errors.Is(err, berrors.ErrInvalid) || errors.Is(err, berrors.ErrChecksum)
}

// openDatabase maps twice MaxBytes at once: while bbolt maps more of a file, it waits for all
// readers.
func (r *Recorder) openDatabase(path string) (db *bolt.DB, err error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 && info.Size() < minSize {
		return nil, fmt.Errorf("%w: it has %d bytes", errDamaged, info.Size())
	}
	err = guarded(func() error {
		db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout: lockTimeout, FreelistType: bolt.FreelistMapType, OpenFile: trusted.OpenFile, InitialMmapSize: int(2*r.cfg.MaxBytes) + allocSize,
		})
		return err
	})
	if errors.Is(err, berrors.ErrVersionMismatch) {
		return nil, fmt.Errorf("%w: %w", errVersion, err)
	}
	if err != nil {
		return nil, err
	}
	db.AllocSize = allocSize
	if err = guarded(func() error { return db.Update(prepare) }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// prepare makes the buckets of a new database, and checks the version of another before it
// changes that.
func prepare(tx *bolt.Tx) error {
	if meta := tx.Bucket(metaBucket); meta != nil {
		if v := meta.Get(versionKey); v != nil && string(v) != version {
			if _, err := strconv.ParseUint(string(v), 10, 16); err != nil {
				return fmt.Errorf("%w: its version is %q", errDamaged, v)
			}
			return fmt.Errorf("%w: its version is %s, and this weft reads version %s", errVersion, v, version)
		}
	}
	for _, name := range [][]byte{metaBucket, logBucket, beforeBucket, contentBucket, publishersBucket} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	if err := adoptForgotten(tx); err != nil {
		return err
	}
	return tx.Bucket(metaBucket).Put(versionKey, []byte(version))
}

// drop closes a database that turned out to be damaged, and renames it.
func (r *Recorder) drop(cause error) error {
	r.dbMu.Lock()
	db := r.db
	r.db, r.shares = nil, nil
	r.dbMu.Unlock()
	err := guarded(db.Close)
	return errors.Join(err, r.moveDamaged(filepath.Join(r.cfg.Dir, databaseName), cause))
}

// view makes a transaction that reads.
//
// Possible errors: ErrUnavailable.
func (r *Recorder) view(f func(*bolt.Tx) error) error {
	r.dbMu.RLock()
	defer r.dbMu.RUnlock()
	if r.db == nil {
		return ErrUnavailable
	}
	return guarded(func() error { return r.db.View(f) })
}

// number returns a number of the bucket "meta".
func number(tx *bolt.Tx, key []byte) int64 {
	b := tx.Bucket(metaBucket).Get(key)
	if len(b) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b)) //nolint:gosec // putNumber wrote it
}

// putNumber stores a number in the bucket "meta".
func putNumber(tx *bolt.Tx, key []byte, n int64) error {
	return tx.Bucket(metaBucket).Put(key, binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:gosec // number reads it
}

// add changes a number of the bucket "meta".
func add(tx *bolt.Tx, key []byte, delta int64) error {
	if delta == 0 {
		return nil
	}
	return putNumber(tx, key, number(tx, key)+delta)
}
