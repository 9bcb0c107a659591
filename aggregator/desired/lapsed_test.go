package desired_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/conntrack"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// TestFlowsOfExpiredElements has backends of a watched map leave by their timeout: their flows are stale, but
// not those of a backend that another element still leads to.
func TestFlowsOfExpiredElements(t *testing.T) {
	const vip, a, b = "10.96.0.10", "10.1.0.1:53", "10.1.0.2:53"
	h := newHarness(t)
	slots := slotsOf(vip, udp, a, b, b)
	slots[0].Timeout, slots[1].Timeout = time.Minute, time.Minute
	m := endpointMap("endpoints", slots...)
	h.commit(snapshot(services, 0, in(ipWeft, withFlags(m, m.Decl.Flags|nftset.FlagTimeout))))
	expired, _ := h.Expire(2 * time.Minute)
	want := []conntrack.Stale{stale(vip, 53, false, a)}
	if got := planner.Lapsed(h.State, expired); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("stale %v, want %v", got, want)
	}
}
