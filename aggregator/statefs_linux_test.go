package aggregator_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// stateFS is a small file system of a test's own, mounted nowhere: its files are
// reached through a file descriptor.
type stateFS struct {
	fd  int
	Dir string
}

// newStateFS makes a file system with room for size bytes.
func newStateFS(t *testing.T, size string) *stateFS {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces)
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	must(t, err)
	defer func() { _ = unix.Close(fs) }()
	must(t, errors.Join(unix.FsconfigSetString(fs, "size", size), unix.FsconfigSetString(fs, "mode", "700"), unix.FsconfigCreate(fs)))
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &stateFS{fd, fmt.Sprintf("/proc/self/fd/%d", fd)}
}

// readOnly makes the file system read-only, or writable again.
func (s *stateFS) readOnly(t *testing.T, on bool) {
	t.Helper()
	attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if on {
		attr = unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	}
	must(t, unix.MountSetattr(s.fd, "", unix.AT_EMPTY_PATH, &attr))
}

// fill takes all room that is left, until the result is called.
func (s *stateFS) fill(t *testing.T) (free func()) {
	t.Helper()
	path := filepath.Join(s.Dir, "filler")
	f, err := os.Create(path)
	must(t, err)
	page := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("fill: %v", err)
	}
	_ = f.Close()
	return func() {
		must(t, os.Remove(path))
	}
}
