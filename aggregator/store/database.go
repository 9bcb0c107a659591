package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/weft-proxy/weft/aggregator/trusted"
)

var (
	// ErrDamaged means that a part of a database is not what was written.
	ErrDamaged = errors.New("database is damaged")
	// ErrVersion means that another version of weft wrote a file, in a format that this one
	// cannot read.
	ErrVersion = errors.New("state directory has another format")
	// ErrInUse means that another process has a database open.
	ErrInUse = errors.New("state directory is in use by another process")
)

// lockTimeout bounds how long the database of another process is waited for: one
// that stops has up to Config.Drain of package aggregator to store what is left.
const lockTimeout = 10 * time.Second

// minSize is the least size of a database, in bytes: its two meta pages. bbolt has no error of
// its own for a shorter file.
var minSize = int64(2 * os.Getpagesize())

// Open opens a database, or makes it. Only trusted users may be able to change the file.
//
// Possible errors: ErrDamaged, ErrVersion (of bbolt), ErrInUse, those of the file system.
func Open(path string, o *bolt.Options) (db *bolt.DB, err error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 && info.Size() < minSize {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrDamaged, info.Size())
	}
	o.Timeout, o.FreelistType, o.OpenFile = lockTimeout, bolt.FreelistMapType, trusted.OpenFile
	err = Guarded(func() error {
		db, err = bolt.Open(path, 0o600, o)
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, ErrInUse
	case errors.Is(err, berrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %w", ErrVersion, err)
	case errors.Is(err, berrors.ErrInvalid) || errors.Is(err, berrors.ErrChecksum):
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return db, err
}

// CheckVersion checks the version of a format, of which this weft reads first to last.
//
// Possible errors: ErrDamaged (it is not a number), ErrVersion.
func CheckVersion(version []byte, first, last int) error {
	switch n, err := strconv.Atoi(string(version)); {
	case err != nil:
		return fmt.Errorf("%w: its version is %q", ErrDamaged, version)
	case n < first || n > last:
		return fmt.Errorf("%w: its version is %d, and this weft reads versions %d to %d: start the version of weft that wrote it", ErrVersion, n, first, last)
	}
	return nil
}

// Guarded calls f and returns a panic as an error. bbolt panics if it meets a
// damaged page, and reads a memory map, where a page beyond the end of the file
// is a fault. A damaged list of free pages makes bbolt write pages that no file can have.
func Guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	if err = f(); errors.Is(err, syscall.EFBIG) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// Checksum is FNV-1a of texts, each with its length.
func Checksum(parts ...[]byte) uint64 {
	h := fnv.New64a()
	var n [4]byte
	for _, p := range parts {
		binary.BigEndian.PutUint32(n[:], uint32(len(p))) //nolint:gosec // a value has at most 2 GiB
		_, _ = h.Write(n[:])
		_, _ = h.Write(p)
	}
	return h.Sum64()
}

// Number returns a number of a bucket, 0 if there is none.
func Number(b *bolt.Bucket, key []byte) uint64 {
	value := b.Get(key)
	if len(value) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// PutNumber stores a number in a bucket.
func PutNumber(b *bolt.Bucket, key []byte, n uint64) error {
	return b.Put(key, binary.BigEndian.AppendUint64(nil, n))
}
