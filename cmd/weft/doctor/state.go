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

// What the state directory needs at least.
const (
	leastBytes  = 1 << 20
	fewBytes    = 64 << 20
	fewInodes   = 100
	writableBit = 0o022
)

const stateLost = "Durable fragments that change now are not there after a reboot, and a restart of weft waits for every publisher to come back"

// checkStateDir examines the state directory and its file system.
func checkStateDir(_ context.Context, n *node) ([]Finding, error) {
	info, err := os.Stat(n.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		if !n.running() {
			return nil, nil
		}
		return []Finding{{
			Severity: Warning, Found: fmt.Sprintf("state directory %s does not exist", n.StateDir), Meaning: stateLost,
			Remedy: "Name the directory of --state-dir with the same flag here; if it is this one, make it (mode 0700) and restart weft",
		}}, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Finding
	if info.Mode().Perm()&writableBit != 0 {
		out = append(out, Finding{
			Severity: Error, Found: fmt.Sprintf("other users can change the state directory %s (mode %04o)", n.StateDir, info.Mode().Perm()),
			Meaning: "weft does not start again with it", Remedy: "`chmod go-w " + n.StateDir + "`",
		})
	}
	var st unix.Statfs_t
	if err := unix.Statfs(n.StateDir, &st); err != nil {
		return out, fmt.Errorf("read the file system of %s: %w", n.StateDir, err)
	}
	out = append(out, judgeFileSystem(n.StateDir, fileSystem{
		readOnly: st.Flags&unix.ST_RDONLY != 0, free: st.Bavail * uint64(st.Bsize), inodes: st.Ffree, hasInodes: st.Files > 0, //nolint:gosec // a block size is positive
	})...)
	return append(out, fromTheFuture(n.StateDir, n.Now())...), nil
}

// fileSystem is what matters of one.
type fileSystem struct {
	readOnly     bool
	free, inodes uint64
	// hasInodes is false if the file system does not count them.
	hasInodes bool
}

// judgeFileSystem returns what is wrong with the file system of the state directory.
func judgeFileSystem(dir string, fs fileSystem) []Finding {
	full := Finding{Meaning: stateLost, Remedy: "Remove or move files there: `df -h " + dir + "`, `df -i " + dir + "`"}
	switch {
	case fs.readOnly:
		return []Finding{{Severity: Error, Found: fmt.Sprintf("the file system of the state directory %s is read-only", dir), Meaning: stateLost, Remedy: "`mount -o remount,rw` it; the kernel's log says why it became read-only (`dmesg`)"}}
	case fs.free < leastBytes:
		full.Severity, full.Found = Error, fmt.Sprintf("the file system of the state directory %s is full: %d KiB are free", dir, fs.free>>10)
	case fs.hasInodes && fs.inodes < fewInodes:
		full.Severity, full.Found = Error, fmt.Sprintf("the file system of the state directory %s has %d inodes left", dir, fs.inodes)
	case fs.free < fewBytes:
		full.Severity, full.Found = Warning, fmt.Sprintf("the file system of the state directory %s is nearly full: %d MiB are free", dir, fs.free>>20)
	default:
		return nil
	}
	return []Finding{full}
}

// skew is how far in the future a time may be.
const skew = time.Minute

// fromTheFuture looks for files of the state directory that were written in the future.
func fromTheFuture(dir string, now time.Time) []Finding {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(now.Add(skew)) {
			return []Finding{{
				Severity: Warning, Found: fmt.Sprintf("%s was written at %s, which is in the future", filepath.Join(dir, e.Name()), info.ModTime().UTC().Format(time.RFC3339)),
				Meaning: "The clock was set back: fragments that expire stay longer than they should", Remedy: "Correct the clock (`timedatectl`, `chronyc tracking`)",
			}}
		}
	}
	return nil
}

// built is a time that has passed: no clock that is right is before it.
var built = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// checkClock compares the clock with what is known to have passed.
func checkClock(_ context.Context, n *node) ([]Finding, error) {
	if now := n.Now(); now.Before(built) {
		return []Finding{{
			Severity: Error, Found: "the clock says " + now.UTC().Format(time.RFC3339), Meaning: "Certificates of the API server are not valid yet, so weft learns of no change, and fragments with an expiration stay",
			Remedy: "Set the clock, and start a service that keeps it right (`timedatectl set-ntp true`)",
		}}, nil
	}
	return nil, nil
}
