package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Rename renames a file of a directory durably.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// SyncDir makes changes of names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator's directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// BootID returns the identity of the boot.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	boot := strings.TrimSpace(string(b))
	if err == nil && boot == "" {
		err = errors.New("/proc/sys/kernel/random/boot_id is empty")
	}
	return boot, err
}
