package aggregator_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// gated is the real kernel, whose first commit waits: begun gives a value when it
// was asked for, and it takes effect once proceed is closed.
type gated struct {
	*kernel.Conn
	once           sync.Once
	begun, proceed chan struct{}
}

func (g *gated) Commit(ops []kernel.Op) (kernel.Stats, error) {
	g.once.Do(func() {
		close(g.begun)
		<-g.proceed
	})
	return g.Conn.Commit(ops)
}

// TestSharedBatch has the real kernel refuse updates of a batch for all that the
// compiler cannot see: they are named, with the reason and what to do, and the
// others are committed in the same step, in one commit.
//
// Behaviour: 169.
func TestSharedBatch(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	for _, noOwner := range []bool{false, true} {
		t.Run(fmt.Sprintf("noOwner=%v", noOwner), func(t *testing.T) { sharedBatch(t, noOwner) })
	}
}

// refusals are fragments that only the kernel can refuse, by what it must say.
func refusals() map[string]*weftv1.Fragment {
	one := func(name string, table *weftv1.Table) *weftv1.Fragment {
		table.Family, table.Name = "ip", "demo"
		return &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{table}}
	}
	return map[string]*weftv1.Fragment{
		"raise its size": one("full", &weftv1.Table{Sets: []*weftv1.Set{{
			Name: "small", Type: "ipv4_addr", Size: 4, Elements: elements("10.7.0.3", "10.7.0.4", "10.7.0.5")}}}),
		"overlaps another": one("overlap", &weftv1.Table{Sets: []*weftv1.Set{{
			Name: "nets", Type: "ipv4_addr", Flags: []string{"interval"}, Elements: elements("10.1.2.0/24")}}}),
		"type nat": one("nat", &weftv1.Table{Chains: []*weftv1.Chain{{
			Name: "input", Type: "filter", Hook: "input", Priority: "filter", Rules: []*weftv1.Rule{{Text: "dnat to 10.0.0.9"}}}}}),
		"lead back": one("loop", &weftv1.Table{Chains: []*weftv1.Chain{
			{Name: "input", Type: "filter", Hook: "input", Priority: "filter", Rules: []*weftv1.Rule{{Text: "jump here"}}},
			{Name: "here", Rules: []*weftv1.Rule{{Text: "jump there"}}},
			{Name: "there", Rules: []*weftv1.Rule{{Text: "jump here"}}}}}),
	}
}

func sharedBatch(t *testing.T, noOwner bool) {
	ns, ctx := nfttest.New(t), aggregatortest.Context(t)
	conn, err := kernel.Open(kernel.Config{NetNS: ns.FD(), NoOwner: noOwner})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	g := &gated{Conn: conn, begun: make(chan struct{}), proceed: make(chan struct{})}
	// The second step is the last one for an hour.
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: g, Rate: 1.0 / 3600, Burst: 2}})
	c, events := d.Dial(t, "tester"), watch(t, d)
	var wg sync.WaitGroup
	wg.Go(func() {
		first := rich()
		first.Tables[0].Sets = append(first.Tables[0].Sets, &weftv1.Set{Name: "small", Type: "ipv4_addr", Size: 4, Elements: elements("10.7.0.1", "10.7.0.2")})
		if _, err := c.Apply(ctx, first); err != nil {
			t.Error(err)
		}
	})
	<-g.begun
	bad := refusals()
	for text, f := range bad {
		wg.Go(func() {
			_, err := c.Apply(ctx, f)
			if err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "the kernel refuses it") {
				t.Errorf("%s: %v: want %q", f.GetName(), err, text)
			}
		})
	}
	const good = 8
	for i := range good {
		wg.Go(func() {
			if _, err := c.Apply(ctx, blocklist(fmt.Sprintf("good-%d", i), fmt.Sprintf("10.0.1.%d", i))); err != nil {
				t.Errorf("good one %d: %v", i, err)
			}
		})
	}
	aggregatortest.Eventually(t, "all wait", func() bool { return d.Aggregator.Pending() == good+len(bad) })
	began := time.Now()
	close(g.proceed)
	wg.Wait()
	took := time.Since(began)
	t.Logf("%d refused and %d committed updates of one batch: %v", len(bad), good, took)
	if took > 30*time.Second {
		t.Errorf("the others waited %v", took)
	}
	second := events.nth(t, 1, func(e *weftv1.WatchResponse) bool { return e.GetCommit() != nil })
	same(t, "fragments of the second commit", len(second.GetCommit().GetFragments()), good)
	text := ns.ListRuleset(t)
	for _, trace := range []string{"10.7.0.5", "10.1.2.0", "10.0.0.9", "here"} {
		if strings.Contains(text, trace) {
			t.Errorf("%s of a refused update is there:\n%s", trace, text)
		}
	}
}

// TestFullSetHasRoomAgain refuses what does not fit, and takes it once another
// publisher has left.
func TestFullSetHasRoomAgain(t *testing.T) {
	_, d, _ := onKernel(t, aggregator.Config{}, false)
	ctx := aggregatortest.Context(t)
	small := func(name string, members ...string) *weftv1.Fragment {
		f := blocklist(name, members...)
		f.Tables[0].Sets[0].Size = 3
		return f
	}
	one, two := d.Dial(t, "one"), d.Dial(t, "two")
	mustApply(t, one, small("list", "10.0.0.1", "10.0.0.2"))
	// One of the two is there already, so it would be four.
	rejection(t, errorOf(two.Apply(ctx, small("list", "10.0.0.2", "10.0.0.3", "10.0.0.4"))), weftv1.Violation_REASON_KERNEL)
	mustApply(t, two, small("list", "10.0.0.2", "10.0.0.3"))
	mustApply(t, one, small("list", "10.0.0.2"))
	mustApply(t, two, small("list", "10.0.0.2", "10.0.0.3", "10.0.0.4"))
}
