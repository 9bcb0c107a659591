package aggregatortest

import (
	"testing"

	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// StartIn is Start with the kernel in a network namespace.
func StartIn(t testing.TB, ns *nfttest.NS) *Daemon {
	t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: ns.FD()})
	if err != nil {
		t.Fatal(err)
	}
	d := Start(t, Config{Config: aggregator.Config{Kernel: conn, StateDir: t.TempDir(), Rate: rate.Inf}})
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Errorf("run aggregator: %v", err)
		}
		conn.Close()
	})
	return d
}
