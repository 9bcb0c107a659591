package publish_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/frontends/publish"
)

// TestFamilies plays a kernel without IPv6, one with it, and one where it is disabled.
func TestFamilies(t *testing.T) {
	proc := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(proc, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want bool) {
		t.Helper()
		if got := publish.Families(proc); got != [2]bool{true, want} {
			t.Errorf("families %v, want IPv6: %v", got, want)
		}
	}
	const disabled = "sys/net/ipv6/conf/all/disable_ipv6"
	expect(false)
	write("net/if_inet6", "")
	expect(true)
	write(disabled, "0\n")
	expect(true)
	write(disabled, "1\n")
	expect(false)
}
