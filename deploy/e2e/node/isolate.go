package node

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

const isolated = "WEFT_E2E_NODE_ISOLATED"

// Isolate gives the process a mount namespace and a UTS namespace with the hostname. Call it first: the
// program executes itself again, with the same process ID, and Isolate returns in the second execution.
func Isolate(hostname string) error {
	if os.Getenv(isolated) == "" {
		return execIsolated()
	}
	if err := os.Unsetenv(isolated); err != nil {
		return fmt.Errorf("isolate node: %w", err)
	}
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("isolate node: set hostname: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("isolate node: make mounts private: %w", err)
	}
	// The kubelet writes links to logs to /var/log/containers, wherever its root is.
	if err := unix.Mount("tmpfs", "/var/log", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("isolate node: mount /var/log: %w", err)
	}
	return nil
}

func execIsolated() error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("isolate node: make namespaces: %w", err)
	}
	program, err := os.Executable()
	if err == nil {
		err = unix.Exec(program, os.Args, append(os.Environ(), isolated+"=1"))
	}
	return fmt.Errorf("isolate node: execute again: %w", err)
}
