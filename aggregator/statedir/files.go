package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/aggregator/trusted"
)

const (
	// damagedSuffix ends the names of damaged files that were renamed.
	damagedSuffix = ".damaged"
	// temporarySuffix ends the name of a database that is being made.
	temporarySuffix = ".tmp"
	// maxDamaged bounds how many damaged files of one name are kept.
	maxDamaged = 10
)

// makeDir makes the directory, if it is missing, and syncs its parent. Only trusted users may
// be able to change it.
//
// Possible errors: trusted.ErrUnsafe, trusted.ErrLink, those of the file system.
func makeDir(dir string) error {
	created, err := trusted.MakeDir(dir, 0o750)
	if err != nil || !created {
		return err
	}
	return store.SyncDir(filepath.Dir(dir))
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
			return to, store.Rename(path, to)
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
