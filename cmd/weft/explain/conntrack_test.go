package explain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFullTable(t *testing.T) {
	root := t.TempDir()
	if got := fullTable(root); got != "" {
		t.Errorf("without connection tracking: %q", got)
	}
	dir := filepath.Join(root, "proc/sys/net/netfilter")
	must(t, os.MkdirAll(dir, 0o700))
	for count, want := range map[string]string{"99": "", "100": "full (100 of 100 entries)", "101": "full (101 of 100 entries)"} {
		for name, text := range map[string]string{"count": count, "max": "100"} {
			must(t, os.WriteFile(filepath.Join(dir, "nf_conntrack_"+name), []byte(text+"\n"), 0o600))
		}
		if got := fullTable(root); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("with %s of 100 entries: %q, want %q", count, got, want)
		}
	}
}
