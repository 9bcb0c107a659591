package sysctl

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestKernel sets what a network namespace has for itself, in the real kernel. The
// limit is the machine's: from another namespace the kernel refuses it, which
// is not a failure.
//
// Behaviour: 154, 156.
func TestKernel(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces)
	ns := nfttest.New(t)
	// The kernel loads connection tracking with the first chain that needs it.
	ns.Nft(t, "table ip t { chain c { type nat hook output priority 0; }; }")
	var log strings.Builder
	want := map[string]string{
		"nf_conntrack_tcp_timeout_established": "25200", "nf_conntrack_tcp_timeout_close_wait": "3540", "nf_conntrack_udp_timeout": "21",
		"nf_conntrack_udp_timeout_stream": "91", "nf_conntrack_tcp_be_liberal": "1",
	}
	got := make(map[string]string)
	if err := ns.Do(func() error {
		err := Run(t.Context(), Config{
			Conntrack: Conntrack{
				Max: 1 << 30, TCPEstablishedTimeout: 7 * time.Hour, TCPCloseWaitTimeout: 59 * time.Minute, UDPTimeout: 21 * time.Second,
				UDPStreamTimeout: 91 * time.Second, TCPBeLiberal: true,
			},
			Once: true, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		for name := range want {
			b, _ := os.ReadFile("/proc/sys/net/netfilter/" + name)
			got[name] = strings.TrimSpace(string(b))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q: want %s", name, got[name], value)
		}
	}
	if !strings.Contains(log.String(), "file=/proc/sys/net/netfilter/nf_conntrack_max want=1073741824") {
		t.Errorf("no warning about the machine's limit:\n%s", &log)
	}
}
