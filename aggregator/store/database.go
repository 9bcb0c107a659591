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

const (
	// lockTimeout bounds the wait for a stopping process, which has up to aggregator.Config.Drain
	// to store its rest.
	lockTimeout = 10 * time.Second
	// mapSize is in bytes of address space. To map more, bbolt waits for all readers.
	mapSize   = 1 << (25 + 5*(strconv.IntSize/64))
	allocSize = 1 << 20
	copySize  = 4 << 20
)

// minSize is the two meta pages: bbolt has no error for a shorter file.
var minSize = int64(2 * os.Getpagesize())

// open opens or makes a database that only trusted users can change.
//
// Possible errors: ErrDamaged, errOtherFormat, ErrInUse, the file system's.
func open(path string, o *bolt.Options) (db *bolt.DB, err error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 && info.Size() < minSize {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrDamaged, info.Size())
	}
	o.Timeout, o.FreelistType = lockTimeout, bolt.FreelistMapType
	if o.OpenFile == nil {
		o.OpenFile = trusted.OpenFile
	}
	err = guarded(func() error {
		db, err = bolt.Open(path, 0o600, o)
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, ErrInUse
	case errors.Is(err, berrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %w", errOtherFormat, err)
	case errors.Is(err, berrors.ErrInvalid) || errors.Is(err, berrors.ErrChecksum):
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return db, err
}

// guarded returns a panic of f as an error: bbolt panics on a damaged page, and a page beyond the
// end of the mapped file faults. A damaged list of free pages makes bbolt write impossible pages
// (EFBIG).
func guarded(f func() error) (err error) {
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

const (
	// metaOffset is the position of the meta data in pages 0 and 1, metaSize its length without
	// checksum (bbolt's internal/common.Meta).
	metaOffset = 16
	metaSize   = 56
)

// checkMeta checks both copies of the meta data. bbolt ignores a damaged copy, and uses the other:
// the transaction before. A crash damages no copy: a copy is less than a sector.
func checkMeta(path string, pageSize int64) error {
	f, err := trusted.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for page := range int64(2) {
		var b [metaSize + 8]byte
		if _, err := f.ReadAt(b[:], page*pageSize+metaOffset); err != nil {
			return err
		}
		h := fnv.New64a()
		_, _ = h.Write(b[:metaSize])
		if binary.NativeEndian.Uint64(b[metaSize:]) != h.Sum64() {
			return fmt.Errorf("%w: the last change may be missing", ErrDamaged)
		}
	}
	return nil
}
