package publish_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// TestFamilies plays a kernel without IPv6, one with it, and one where it is disabled.
func TestFamilies(t *testing.T) {
	proc := t.TempDir()
	const addresses, disabled = "net/if_inet6", "sys/net/ipv6/conf/all/disable_ipv6"
	for _, dir := range []string{filepath.Dir(addresses), filepath.Dir(disabled)} {
		publishtest.Must(t, os.MkdirAll(filepath.Join(proc, dir), 0o700))
	}
	for _, tt := range []struct {
		path, text string
		want       bool
	}{{"net/other", "", false}, {addresses, "", true}, {disabled, "0\n", true}, {disabled, "1\n", false}} {
		publishtest.Must(t, os.WriteFile(filepath.Join(proc, tt.path), []byte(tt.text), 0o600))
		publishtest.Equal(t, fmt.Sprintf("with %q in %s families with IPv6: %v", tt.text, tt.path, tt.want), publish.Families(proc), [2]bool{true, tt.want})
	}
}
