package server

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// executableOf returns the path of a process's executable in the daemon's mount namespace. dir is
// the process's directory in /proc.
//
// The path in /proc belongs to a mount namespace in which users may place any file at any path. So
// the executable must be the daemon's file at the path, or be on a mount of the daemon's namespace:
// then it was replaced later, as by an upgrade.
func executableOf(dir string) (string, error) {
	path, err := os.Readlink(dir + "/exe")
	if errors.Is(err, os.ErrPermission) {
		return "", fmt.Errorf("%w (of other users' processes the aggregator needs CAP_SYS_PTRACE)", err)
	}
	if err != nil {
		return "", err
	}
	theirs, err := os.Stat(dir + "/exe")
	if err != nil {
		return "", err
	}
	if ours, err := os.Stat(path); err == nil && os.SameFile(theirs, ours) {
		return path, nil
	}
	switch here, err := mountedHere(dir + "/exe"); {
	case err != nil:
		return "", err
	case !here:
		return "", fmt.Errorf("executable %s is in another mount namespace, and is not the file at that path in the aggregator's: match the cgroup instead", path)
	}
	return strings.TrimSuffix(path, " (deleted)"), nil
}

func mountedHere(file string) (bool, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, file, 0, unix.STATX_MNT_ID, &st); err != nil {
		return false, &os.PathError{Op: "statx", Path: file, Err: err}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	id := strconv.FormatUint(st.Mnt_id, 10) + " "
	for line := range strings.Lines(string(mounts)) {
		if strings.HasPrefix(line, id) {
			return true, nil
		}
	}
	return false, nil
}
