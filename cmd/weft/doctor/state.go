package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	leastBytes  = 1 << 20
	fewBytes    = 64 << 20
	fewInodes   = 100
	writableBit = 0o022
)

const stateLost = "Durable fragments that change now are not there after a reboot, and a restart of weft waits for every publisher to come back"

func checkStateDir(_ context.Context, n *node, r *findings) error {
	info, err := os.Stat(n.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		if !n.running() {
			return nil
		}
		r.add(Warning, fmt.Sprintf("state directory %s does not exist", n.StateDir), stateLost,
			"Name the directory of --state-dir with the same flag here; if it is this one, make it (mode 0700) and restart weft")
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Perm()&writableBit != 0 {
		r.add(Error, fmt.Sprintf("other users can change the state directory %s (mode %04o)", n.StateDir, info.Mode().Perm()),
			"weft does not start again with it", "`chmod go-w "+n.StateDir+"`")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(n.StateDir, &st); err != nil {
		return fmt.Errorf("read the file system of %s: %w", n.StateDir, err)
	}
	r.judgeFileSystem(n.StateDir, fileSystem{
		readOnly: st.Flags&unix.ST_RDONLY != 0, free: st.Bavail * uint64(st.Bsize), inodes: st.Ffree, hasInodes: st.Files > 0, //nolint:gosec // a block size is positive
	})
	r.fromTheFuture(n.StateDir, n.Now())
	return nil
}

type fileSystem struct {
	readOnly     bool
	free, inodes uint64
	// false if the file system counts no inodes
	hasInodes bool
}

func (r *findings) judgeFileSystem(dir string, fs fileSystem) {
	remove := "Remove or move files there: `df -h " + dir + "`, `df -i " + dir + "`"
	switch {
	case fs.readOnly:
		r.add(Error, fmt.Sprintf("the file system of the state directory %s is read-only", dir), stateLost,
			"`mount -o remount,rw` it; the kernel's log says why it became read-only (`dmesg`)")
	case fs.free < leastBytes:
		r.add(Error, fmt.Sprintf("the file system of the state directory %s is full: %d KiB are free", dir, fs.free>>10), stateLost, remove)
	case fs.hasInodes && fs.inodes < fewInodes:
		r.add(Error, fmt.Sprintf("the file system of the state directory %s has %d inodes left", dir, fs.inodes), stateLost, remove)
	case fs.free < fewBytes:
		r.add(Warning, fmt.Sprintf("the file system of the state directory %s is nearly full: %d MiB are free", dir, fs.free>>20), stateLost, remove)
	}
}

const skew = time.Minute

// fromTheFuture reports a file in dir that was modified more than skew after now.
func (r *findings) fromTheFuture(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(now.Add(skew)) {
			r.add(Warning, fmt.Sprintf("%s was written at %s, which is in the future", filepath.Join(dir, e.Name()), info.ModTime().UTC().Format(time.RFC3339)),
				"The clock was set back: fragments that expire stay longer than they should", "Correct the clock (`timedatectl`, `chronyc tracking`)")
			return
		}
	}
}

// built precedes every correct clock.
var built = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func checkClock(_ context.Context, n *node, r *findings) error {
	if now := n.Now(); now.Before(built) {
		r.add(Error, "the clock says "+now.UTC().Format(time.RFC3339), "Certificates of the API server are not valid yet, so weft learns of no change, and fragments with an expiration stay",
			"Set the clock, and start a service that keeps it right (`timedatectl set-ntp true`)")
	}
	return nil
}
