package trusted

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

var (
	// ErrUnsafe means that another user could change a file or directory.
	ErrUnsafe = errors.New("other users can change it")
	// ErrLink means that a path is a symbolic link.
	ErrLink = errors.New("is a symbolic link")
)

// maxLinks is as in the kernel.
const maxLinks = 40

// MakeDir creates a directory and its missing parents, and checks the path. The umask does not reduce the
// mode. An existing directory keeps its mode.
//
// Possible errors: ErrUnsafe, ErrLink, the file system's.
func MakeDir(path string, mode os.FileMode) (created bool, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return false, err
	}
	dir, links := "/", 0
	rest := components(path)
	for {
		sticky, err := checkDir(dir, len(rest) == 0)
		if err != nil || len(rest) == 0 {
			return created, err
		}
		next := filepath.Join(dir, rest[0])
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			created = true
			info, err = makeDir(next, mode)
		}
		switch {
		case err != nil:
			return created, err
		case info.Mode().Type() != fs.ModeSymlink || inProc(dir):
			dir, rest = next, rest[1:]
			continue
		case len(rest) == 1:
			return created, fmt.Errorf("%s %w: give the path that it leads to", next, ErrLink)
		}
		if links++; links > maxLinks {
			return created, &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		}
		// In a directory writable only by trusted users, only they make links.
		if err := checkOwner(next, info); sticky && err != nil {
			return created, err
		}
		to, err := os.Readlink(next)
		if err != nil {
			return created, err
		}
		if filepath.IsAbs(to) {
			dir = "/"
		}
		rest = append(components(filepath.Join(dir, to)), rest[1:]...)
		dir = "/"
	}
}

// Links in /proc, such as /proc/self/fd/3, are open files rather than paths.
func inProc(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
}

func components(path string) []string {
	path = strings.Trim(filepath.Clean(path), "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

func makeDir(path string, mode os.FileMode) (fs.FileInfo, error) {
	err := os.Mkdir(path, mode)
	switch {
	case errors.Is(err, fs.ErrExist):
	case err != nil:
		return nil, err
	default:
		if err := os.Chmod(path, mode); err != nil {
			return nil, err
		}
	}
	return os.Lstat(path)
}

// Only a parent directory may be sticky.
func checkDir(path string, last bool) (sticky bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	if err := checkOwner(path, info); err != nil {
		return false, err
	}
	mode := info.Mode()
	if mode.Perm()&0o022 == 0 {
		return false, nil
	}
	if mode&fs.ModeSticky != 0 && !last {
		return true, nil
	}
	return false, fmt.Errorf("directory %s has mode %04o: %w: chmod go-w, or use another directory", path, mode.Perm(), ErrUnsafe)
}

func checkOwner(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: the owner is unknown", path)
	}
	self := os.Geteuid()
	if st.Uid == 0 || int(st.Uid) == self {
		return nil
	}
	var root syscall.Stat_t
	if err := syscall.Stat("/", &root); err == nil && root.Uid == st.Uid {
		return nil
	}
	return fmt.Errorf("%s belongs to uid %d, not %d: %w: chown it, or use another path", path, st.Uid, self, ErrUnsafe)
}
