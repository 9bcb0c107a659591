package aggregator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestKernelExpiration has the kernel lose a fragment at its time, and a client
// keep another one by putting it again.
func TestKernelExpiration(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	d, _ := startKernel(t, ns, aggregator.Config{StateDir: t.TempDir()}, false)
	c, ctx := d.Dial(t, "tester"), aggregatortest.Context(t)
	watching, cancel := context.WithCancel(ctx)
	expired := make(chan *weftv1.Expired, 1)
	go func() {
		_ = c.Watch(watching, func(e *weftv1.WatchResponse) error {
			if x := e.GetExpired(); x != nil {
				expired <- x
			}
			return nil
		})
	}()
	defer cancel()
	s := c.Session(client.SessionConfig{})
	defer func() { _ = s.Close() }()
	renewed := func(ttl time.Duration) {
		t.Helper()
		if _, err := s.Put(ctx, living(blocklist("renewed", "10.0.0.2"), ttl)); err != nil {
			t.Fatal(err)
		}
	}
	renewed(300 * time.Millisecond)
	mustApply(t, c, living(blocklist("brief", "10.0.0.1"), time.Second))
	renewed(time.Hour)
	if !strings.Contains(ns.ListRuleset(t), "10.0.0.1") {
		t.Fatal("the fragment is not in the kernel")
	}
	aggregatortest.Eventually(t, "the fragment is gone", func() bool { return !strings.Contains(ns.ListRuleset(t), "10.0.0.1") })
	select {
	case e := <-expired:
		if e.GetFragment().Text() != "tester/brief" {
			t.Errorf("event %v", e)
		}
	case <-ctx.Done():
		t.Error("no event")
	}
	list, err := c.List(ctx)
	if err != nil || len(list.GetFragments()) != 1 || !strings.Contains(ns.ListRuleset(t), "10.0.0.2") {
		t.Fatalf("fragments %v, error %v", list.GetFragments(), err)
	}
}
