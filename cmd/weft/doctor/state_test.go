package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFileSystem judges file systems of the state directory.
func TestFileSystem(t *testing.T) {
	for _, tc := range []struct {
		name     string
		fs       fileSystem
		severity Severity
		found    string
	}{
		{"good", fileSystem{free: 1 << 30, inodes: 1000, hasInodes: true}, "", ""},
		{"without inodes", fileSystem{free: 1 << 30}, "", ""},
		{"read-only", fileSystem{readOnly: true, free: 1 << 30}, Error, "is read-only"},
		{"full", fileSystem{free: 4096}, Error, "is full: 4 KiB"},
		{"nearly full", fileSystem{free: 3 << 20}, Warning, "nearly full: 3 MiB"},
		{"no inodes", fileSystem{free: 1 << 30, inodes: 5, hasInodes: true}, Error, "has 5 inodes"},
	} {
		var found findings
		found.judgeFileSystem("/d", tc.fs)
		if tc.severity == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v", tc.name, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Severity != tc.severity || !strings.Contains(found[0].Found, tc.found) || found[0].Remedy == "" {
			t.Errorf("%s: %+v", tc.name, found)
		}
	}
}

// TestStateDir examines real directories.
func TestStateDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	now := time.Now()
	n := newNode(t.Context(), Config{StateDir: dir, Socket: filepath.Join(dir, "none"), Now: func() time.Time { return now }})
	check := func(step string, want ...string) {
		t.Helper()
		var found findings
		err := checkStateDir(t.Context(), n, &found)
		if err != nil || len(found) != len(want) {
			t.Fatalf("%s: %+v, %v", step, found, err)
		}
		for i, f := range found {
			if !strings.Contains(f.Found, want[i]) {
				t.Errorf("%s: %q: want %q", step, f.Found, want[i])
			}
		}
	}
	check("good")
	file := filepath.Join(dir, "fragments")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, now, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o770); err != nil { //nolint:gosec // the fault
		t.Fatal(err)
	}
	check("two faults", "mode 0770", "which is in the future")
	n.StateDir = filepath.Join(dir, "missing")
	check("no directory, and no weft")
}

// TestClock finds a clock that is earlier than the release.
func TestClock(t *testing.T) {
	for at, want := range map[time.Time]int{time.Unix(0, 0): 1, built.Add(time.Hour): 0} {
		var found findings
		err := checkClock(t.Context(), newNode(t.Context(), Config{Now: func() time.Time { return at }}), &found)
		if err != nil || len(found) != want {
			t.Errorf("%v: %+v, %v", at, found, err)
		}
	}
}
