package doctor

import (
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
