package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/trusted"
)

const (
	// damagedSuffix is for damaged files, otherSuffix for files of other versions of weft.
	damagedSuffix = ".damaged"
	otherSuffix   = ".other-format"
	// temporarySuffix is for an unfinished database, and for reserve.
	temporarySuffix = ".tmp"
	// maxQuarantined bounds renamed files with a name.
	maxQuarantined = 10
)

// makeDir makes a missing directory that only trusted users can change, and syncs its parent.
func (s *Store) makeDir() error {
	created, err := trusted.MakeDir(s.cfg.Path, 0o750)
	if err != nil || !created {
		return err
	}
	return syncDir(filepath.Dir(s.cfg.Path))
}

// formerFiles returns the files of versions with other files.
func formerFiles(dir string) []string {
	return present(dir, "weft.db", "weft.db.outdated", "history.db", "unconfirmed")
}

func present(dir string, names ...string) (paths []string) {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// quarantine renames a file or directory: with the suffix, then with -1 and so on.
func quarantine(path, suffix string) (string, error) {
	for i := range maxQuarantined {
		to := path + suffix
		if i > 0 {
			to += "-" + strconv.Itoa(i)
		}
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return to, rename(path, to)
		}
	}
	return "", fmt.Errorf("there are %d files with names like %s already: remove them", maxQuarantined, path+suffix)
}

// rename syncs the directory of both names.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator's directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// reserve returns an error without room for n more bytes.
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

// removeTemporary cleans up after a crash.
func removeTemporary(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), temporarySuffix) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	boot := strings.TrimSpace(string(b))
	if err == nil && boot == "" {
		err = errors.New("/proc/sys/kernel/random/boot_id is empty")
	}
	return boot, err
}
