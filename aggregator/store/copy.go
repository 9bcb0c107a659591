package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// version is the format's.
const version = "5"

var (
	stateBucket = []byte("state")
	versionKey  = []byte("version")
	// runningKey has the boot ID while a process uses the database.
	runningKey = []byte("running")
)

var errOtherFormat = errors.New("another version of weft wrote the database")

// maxDepth bounds the nesting of buckets: a damaged database may have cycles.
const maxDepth = 4

type loss struct {
	part Part
	// bucket is the lost bucket of a Single part, or nil.
	bucket []byte
	err    error
	// kept data is there, but may be from an earlier transaction.
	kept bool
}

// checkFormat checks the version of a database. It sets killed.
func (s *Store) checkFormat(tx *bolt.Tx) error {
	state := tx.Bucket(stateBucket)
	if state == nil {
		return fmt.Errorf("%w: it has no version", ErrDamaged)
	}
	v := state.Get(versionKey)
	n := len(v) - 8
	if n < 0 || binary.BigEndian.Uint64(v[n:]) != checksum(versionKey, v[:n]) {
		return fmt.Errorf("%w: its version", ErrDamaged)
	}
	if string(v[:n]) != version {
		return fmt.Errorf("%w: its version is %s, and this weft has version %s", errOtherFormat, v[:n], version)
	}
	boot, err := BootID()
	s.killed = err == nil && string(state.Get(runningKey)) == boot
	return nil
}

func writeFormat(tx *bolt.Tx) error {
	state, err := tx.CreateBucket(stateBucket)
	if err != nil {
		return err
	}
	if boot, err := BootID(); err == nil {
		if err := state.Put(runningKey, []byte(boot)); err != nil {
			return err
		}
	}
	return state.Put(versionKey, binary.BigEndian.AppendUint64([]byte(version), checksum(versionKey, []byte(version))))
}

func (s *Store) check(tx *bolt.Tx) (losses []loss) {
	for _, p := range s.parts {
		name := []byte(p.Bucket)
		err := guarded(func() error {
			b := tx.Bucket(name)
			if b == nil {
				return ErrDamaged
			}
			if !p.Single {
				_, err := checkBucket(b, name, maxDepth)
				return err
			}
			var sum stats
			err := b.ForEachBucket(func(k []byte) error {
				err := guarded(func() error {
					sub := b.Bucket(k)
					sum.add(readStats(sub))
					_, err := checkBucket(sub, k, maxDepth-1)
					return err
				})
				if err != nil {
					losses = append(losses, loss{part: p, bucket: bytes.Clone(k), err: fmt.Errorf("%s: %w", k, err)})
				}
				return nil
			})
			if err == nil && sum != readStats(b) {
				losses = append(losses, loss{part: p, err: fmt.Errorf("%w: something is missing", ErrDamaged), kept: true})
			}
			return err
		})
		if err != nil {
			losses = append(losses, loss{part: p, err: err})
		}
	}
	return losses
}

// checkBucket compares the sum of a bucket with the stored one.
func checkBucket(b *bolt.Bucket, name []byte, depth int) (sum stats, err error) {
	if depth == 0 {
		return sum, ErrDamaged
	}
	err = b.ForEach(func(k, v []byte) error {
		switch {
		case v == nil:
			sub, err := checkBucket(b.Bucket(k), k, depth-1)
			sum.add(sub)
			return err
		case !bytes.Equal(k, statsKey):
			sum.add(entry(name, k, v))
		}
		return nil
	})
	if err == nil && sum != readStats(b) {
		err = ErrDamaged
	}
	return sum, err
}

// create fills a new database from source (may be nil), and puts it in the place of the present
// file. It returns the new name of a damaged one.
func (s *Store) create(source *bolt.DB, losses []loss) (db *bolt.DB, renamed string, err error) {
	if err := s.makeDir(); err != nil {
		return nil, "", err
	}
	path, temporary := s.file(), s.file()+temporarySuffix
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	// It is synced once, as a whole.
	db, err = open(temporary, &bolt.Options{NoSync: true, NoGrowSync: true, InitialMmapSize: mapSize})
	if err != nil {
		return nil, "", err
	}
	err = s.fill(db, source, losses)
	if err == nil {
		err = db.Sync()
	}
	if err == nil && s.replaced {
		var failed error
		if renamed, failed = quarantine(path, damagedSuffix); failed != nil {
			s.cfg.Logger.Error("damaged file is not renamed", "file", path, "error", failed)
		}
	}
	if err == nil {
		err = rename(temporary, path)
	}
	if err != nil {
		return nil, "", errors.Join(err, db.Close(), os.Remove(temporary))
	}
	s.replaced = false
	db.NoSync, db.NoGrowSync, db.AllocSize = false, false, allocSize
	return db, renamed, nil
}

func (s *Store) createInMemory(source *bolt.DB, losses []loss) (*bolt.DB, error) {
	db, err := open(databaseName, &bolt.Options{NoSync: true, NoGrowSync: true, OpenFile: func(name string, _ int, _ os.FileMode) (*os.File, error) {
		fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
		return os.NewFile(uintptr(fd), name), err //nolint:gosec // a descriptor
	}})
	if err != nil {
		return nil, err
	}
	if err := s.fill(db, source, losses); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// fill copies all parts of source but the lost ones.
func (s *Store) fill(db, source *bolt.DB, losses []loss) error {
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	c := &copier{to: db, tx: tx, skip: make(map[string]bool)}
	defer func() { _ = c.tx.Rollback() }()
	for _, l := range losses {
		if !l.kept {
			c.skip[pathOf([][]byte{[]byte(l.part.Bucket), l.bucket})] = true
		}
	}
	if err := writeFormat(tx); err != nil {
		return err
	}
	for _, p := range s.parts {
		if _, err := c.tx.CreateBucket([]byte(p.Bucket)); err != nil {
			return err
		}
	}
	if source != nil {
		err := guarded(func() error { return source.View(func(from *bolt.Tx) error { return c.parts(from, s.parts) }) })
		if err != nil {
			return err
		}
	}
	return c.tx.Commit()
}

// copier copies buckets in transactions of about copySize bytes.
type copier struct {
	to   *bolt.DB
	tx   *bolt.Tx
	size int
	skip map[string]bool
}

func pathOf(names [][]byte) string {
	return strings.TrimRight(string(bytes.Join(names, []byte{0})), "\x00")
}

func (c *copier) parts(from *bolt.Tx, parts []Part) error {
	for _, p := range parts {
		path := [][]byte{[]byte(p.Bucket)}
		b := from.Bucket(path[0])
		if c.skip[p.Bucket] || b == nil {
			continue
		}
		if err := c.bucket(b, path); err != nil {
			return err
		}
		if !p.Single {
			continue
		}
		var sum stats
		to := c.at(path)
		err := to.ForEachBucket(func(k []byte) error { sum.add(readStats(to.Bucket(k))); return nil })
		if err == nil {
			err = putStats(to, sum)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) at(path [][]byte) *bolt.Bucket {
	b := c.tx.Bucket(path[0])
	for _, name := range path[1:] {
		b = b.Bucket(name)
	}
	b.FillPercent = 0.9
	return b
}

func (c *copier) bucket(from *bolt.Bucket, path [][]byte) error {
	if err := c.at(path).SetSequence(from.Sequence()); err != nil {
		return err
	}
	return from.ForEach(func(k, v []byte) error {
		if c.size += len(k) + len(v); c.size > copySize {
			if err := c.tx.Commit(); err != nil {
				return err
			}
			var err error
			if c.tx, err = c.to.Begin(true); err != nil {
				return err
			}
			c.size = 0
		}
		if v != nil {
			return c.at(path).Put(k, v)
		}
		sub := append(slices.Clone(path), k)
		if c.skip[pathOf(sub)] {
			return nil
		}
		if _, err := c.at(path).CreateBucket(k); err != nil {
			return err
		}
		return c.bucket(from.Bucket(k), sub)
	})
}
