package trusted

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OpenFile is os.OpenFile for a regular file writable only by trusted users, in a directory checked by
// MakeDir. It does not follow a last link, and a FIFO does not block it.
//
// Possible errors: ErrUnsafe, the file system's.
func OpenFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag|unix.O_NONBLOCK|unix.O_NOFOLLOW, mode) //nolint:gosec // the operator's directory
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = checkFile(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func checkFile(name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is a %s: want a regular file", name, info.Mode())
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("file %s has mode %04o: %w: chmod go-w", name, mode, ErrUnsafe)
	}
	return checkOwner(name, info)
}
