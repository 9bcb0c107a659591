package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// load is so many new connections a second. A busy machine makes fewer. TCP retransmits a lost packet; a
// lost UDP packet is a failure.
func load(from *lab.Namespace, network string, to netip.AddrPort, rate int) *lab.Stream {
	return &lab.Stream{
		Name: fmt.Sprintf("%s from %s, %d/s", network, from.Name(), rate),
		From: from, Network: network, To: to, Every: time.Second / time.Duration(rate), Late: 10 * time.Second,
	}
}

// report ends the traffic, and fails the test for every failed request.
func report(t *testing.T, traffic *lab.Traffic) {
	t.Helper()
	asked, lost := traffic.Stop()
	t.Logf("%d requests, %d failed", asked, len(lost))
	if len(lost) > 0 {
		t.Errorf("failed requests:\n%s", strings.Join(lost[:min(len(lost), 10)], "\n"))
	}
}
