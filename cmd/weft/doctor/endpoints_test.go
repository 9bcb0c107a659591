package doctor

import (
	"context"
	"net/netip"
	"strings"
	"testing"
)

// TestSilentEndpoints: endpoints that do not answer are an error, unless the connection
// tracking table is full, because no new connection passes then.
func TestSilentEndpoints(t *testing.T) {
	probes := []probe{{service: "shop/web", addr: netip.MustParseAddrPort("10.244.1.2:8080"), err: context.DeadlineExceeded}}
	for count, want := range map[string]struct {
		severity Severity
		found    string
	}{
		"1000":   {Error, "1 endpoints do not answer this node: 10.244.1.2:8080 of shop/web"},
		"262144": {Unknown, "the connection tracking table is full: 1 endpoints, such as 10.244.1.2:8080 of shop/web"},
	} {
		n := rootOf(t, map[string]string{"proc/sys/net/netfilter/nf_conntrack_count": count})
		var found findings
		found.judge(n, probes)
		if len(found) != 1 || found[0].Severity != want.severity || !strings.Contains(found[0].Found, want.found) {
			t.Errorf("with %s entries: %+v, want %+v", count, found, want)
		}
	}
}
