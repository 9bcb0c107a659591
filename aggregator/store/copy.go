package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// version is the version of the format.
const version = "6"

var (
	stateBucket = []byte("state")
	versionKey  = []byte("version")
	// runningKey has the boot ID while a process uses the database.
	runningKey = []byte("running")
)

var errOtherFormat = errors.New("another version of weft wrote the database")

// maxDepth bounds the nesting of buckets: a damaged database may have cycles.
const maxDepth = 4

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

// create fills a new database from source (may be nil), and puts it in the place of the present
// file. It returns the losses and the new name of a damaged file.
func (s *Store) create(source *bolt.DB) (db *bolt.DB, losses []loss, renamed string, err error) {
	if err := s.makeDir(); err != nil {
		return nil, nil, "", err
	}
	path, temporary := s.file(), s.file()+temporarySuffix
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, "", err
	}
	// create syncs it once, as a whole.
	db, err = open(temporary, &bolt.Options{NoSync: true, NoGrowSync: true, InitialMmapSize: mapSize})
	if err != nil {
		return nil, nil, "", err
	}
	losses, err = s.fill(db, source)
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
		return nil, nil, "", errors.Join(err, db.Close(), os.Remove(temporary))
	}
	s.replaced = false
	db.NoSync, db.NoGrowSync, db.AllocSize = false, false, allocSize
	return db, losses, renamed, nil
}

func (s *Store) createInMemory(source *bolt.DB) (*bolt.DB, []loss, error) {
	db, err := open(databaseName, &bolt.Options{NoSync: true, NoGrowSync: true, OpenFile: func(name string, _ int, _ os.FileMode) (*os.File, error) {
		fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
		return os.NewFile(uintptr(fd), name), err //nolint:gosec // a descriptor
	}})
	if err != nil {
		return nil, nil, err
	}
	losses, err := s.fill(db, source)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, losses, nil
}

// fill copies all parts of source, and returns the damaged ones.
func (s *Store) fill(db, source *bolt.DB) (losses []loss, err error) {
	tx, err := db.Begin(true)
	if err != nil {
		return nil, err
	}
	c := &copier{to: db, tx: tx}
	defer func() { _ = c.tx.Rollback() }()
	err = writeFormat(tx)
	for _, p := range s.parts {
		if err == nil {
			_, err = tx.CreateBucket([]byte(p.Bucket))
		}
	}
	if err == nil && source != nil {
		err = guarded(func() error {
			return source.View(func(from *bolt.Tx) error {
				for _, p := range s.parts {
					if err := c.part(from, p); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	if err != nil {
		return nil, err
	}
	s.replaced = s.replaced || len(c.losses) > 0
	return c.losses, c.tx.Commit()
}

// copier checks and copies buckets in transactions of about copySize bytes.
type copier struct {
	to     *bolt.DB
	tx     *bolt.Tx
	size   int
	losses []loss
}

// part copies a part without its damage. It returns only errors of writes.
func (c *copier) part(from *bolt.Tx, p Part) error {
	path := [][]byte{[]byte(p.Bucket)}
	if !p.Single {
		_, err := c.check(p, path, func() *bolt.Bucket { return from.Bucket(path[0]) })
		return err
	}
	// want is the sum of the stored checksums, copied the sum of the buckets without damage.
	var want, copied stats
	err := guarded(func() error {
		b := from.Bucket(path[0])
		if b == nil {
			return ErrDamaged
		}
		err := b.ForEachBucket(func(k []byte) error {
			if _, err := c.at(path).CreateBucket(k); isDamage(err) {
				c.losses = append(c.losses, loss{p, fmt.Errorf("%w: bucket %q: %w", ErrDamaged, k, err)})
				return nil
			} else if err != nil {
				return err
			}
			sum, err := c.check(p, append(path, k), func() *bolt.Bucket {
				sub := b.Bucket(k)
				want.add(readStats(sub))
				return sub
			})
			copied.add(sum)
			return err
		})
		if err == nil && want != readStats(b) {
			return fmt.Errorf("%w: something is missing", ErrDamaged)
		}
		return err
	})
	if errors.Is(err, ErrDamaged) {
		c.losses = append(c.losses, loss{p, err})
		err = nil
	}
	if err == nil {
		err = putStats(c.at(path), copied)
	}
	return err
}

// check copies a bucket of a part, or removes the damaged copy.
func (c *copier) check(p Part, path [][]byte, from func() *bolt.Bucket) (sum stats, err error) {
	err = guarded(func() (err error) { sum, err = c.bucket(from(), path); return err })
	if !errors.Is(err, ErrDamaged) {
		return sum, err
	}
	if len(path) > 1 {
		c.losses = append(c.losses, loss{p, fmt.Errorf("%s: %w", path[1], err)})
		return stats{}, c.at(path[:1]).DeleteBucket(path[1])
	}
	c.losses = append(c.losses, loss{p, err})
	err = c.tx.DeleteBucket(path[0])
	if err == nil {
		_, err = c.tx.CreateBucket(path[0])
	}
	return stats{}, err
}

func (c *copier) at(path [][]byte) *bolt.Bucket {
	b := c.tx.Bucket(path[0])
	for _, name := range path[1:] {
		b = b.Bucket(name)
	}
	b.FillPercent = 0.9
	return b
}

// bucket copies a bucket, and compares the sum of its entries with the stored one.
func (c *copier) bucket(from *bolt.Bucket, path [][]byte) (sum stats, err error) {
	if from == nil || len(path) > maxDepth {
		return sum, ErrDamaged
	}
	if err := c.at(path).SetSequence(from.Sequence()); err != nil {
		return sum, err
	}
	err = from.ForEach(func(k, v []byte) error {
		if err := c.proceed(len(k) + len(v)); err != nil {
			return err
		}
		if v == nil {
			if _, err := c.at(path).CreateBucket(k); err != nil {
				return asDamage(err)
			}
			sub, err := c.bucket(from.Bucket(k), append(slices.Clone(path), k))
			sum.add(sub)
			return err
		}
		if !bytes.Equal(k, statsKey) {
			sum.add(entry(path[0], path[len(path)-1], k, v))
		}
		return asDamage(c.at(path).Put(k, v))
	})
	if err == nil && sum != readStats(from) {
		err = ErrDamaged
	}
	return sum, err
}

// isDamage reports whether bbolt refuses a key or value that a sound source cannot have.
func isDamage(err error) bool {
	return slices.ContainsFunc([]error{
		bolterrors.ErrBucketNameRequired, bolterrors.ErrBucketExists, bolterrors.ErrIncompatibleValue,
		bolterrors.ErrKeyRequired, bolterrors.ErrKeyTooLarge, bolterrors.ErrValueTooLarge,
	}, func(of error) bool { return errors.Is(err, of) })
}

func asDamage(err error) error {
	if isDamage(err) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// proceed begins another transaction if the present one is full.
func (c *copier) proceed(size int) (err error) {
	if c.size += size; c.size <= copySize {
		return nil
	}
	c.size = size
	if err = c.tx.Commit(); err == nil {
		c.tx, err = c.to.Begin(true)
	}
	return err
}
