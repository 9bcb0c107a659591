package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// damagedSuffix ends the names of damaged files that were renamed.
	damagedSuffix = ".damaged"
	// temporarySuffix ends the name of a database that is being made.
	temporarySuffix = ".tmp"
	// maxDamaged bounds how many damaged files of one name are kept.
	maxDamaged = 10
)

// errUnsafe means that a file could have been written by another user.
var errUnsafe = errors.New("other users can write the file")

// openTrusted opens a file that only root and the user of this process can
// write. A FIFO does not block it, and it does not follow a link.
func openTrusted(name string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag|unix.O_NONBLOCK|unix.O_NOFOLLOW, mode) //nolint:gosec // the operator's directory
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = trusted(info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// trusted returns why a file cannot be one of weft's own.
func trusted(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: want a regular file", info.Mode())
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("mode %04o: %w: chmod go-w", mode, errUnsafe)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("owner is unknown")
	}
	if self := os.Geteuid(); st.Uid != 0 && int(st.Uid) != self {
		return fmt.Errorf("owner is uid %d, not %d: %w: chown it", st.Uid, self, errUnsafe)
	}
	return nil
}

// makeDir makes a directory and syncs its parent.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// rename renames a file of a directory durably.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

// syncDir makes changes of names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator's directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// moveDamaged renames a damaged file, or anything else in its place, and returns
// the new name: path.damaged, or path.damaged-1 and so on if that exists.
func moveDamaged(path string) (string, error) {
	for i := range maxDamaged {
		to := path + damagedSuffix
		if i > 0 {
			to += "-" + strconv.Itoa(i)
		}
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return to, rename(path, to)
		}
	}
	return "", fmt.Errorf("there are %d damaged files of this name already: remove them", maxDamaged)
}

// reserve returns an error if a directory has no room for n more bytes.
func reserve(dir string, n int64) error {
	f, err := os.CreateTemp(dir, "room*"+temporarySuffix)
	if err != nil {
		return err
	}
	defer func() { _, _ = f.Close(), os.Remove(f.Name()) }()
	err = unix.Fallocate(int(f.Fd()), 0, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil // The write itself reports it.
	}
	if err != nil {
		return fmt.Errorf("reserve %d bytes in %s: %w", n, dir, err)
	}
	return nil
}

// removeTemporary removes what a crash left of a database that was being made,
// and of reserve.
func removeTemporary(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), temporarySuffix) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
