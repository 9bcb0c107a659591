package knft_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/knft"
)

// TestListCounters sends packets and compares two adapters' counters with nft(8).
func TestListCounters(t *testing.T) {
	w := newWorld(t)
	nft, other := newAdapter(t, w.client, sharedConfig), newAdapter(t, w.daemon.Dial(t, "other"), sharedConfig)
	must(t, nft, add(
		table(),
		&knftables.Counter{Name: "hits", Comment: ptr("what left")},
		&knftables.Counter{Name: "begun", Packets: ptr(uint64(3)), Bytes: ptr(uint64(180))},
		base("out", knftables.FilterType, knftables.OutputHook, knftables.FilterPriority),
		rule("out", "udp dport 9 counter name hits"),
	))
	if err := w.weft.Do(func() error {
		c, err := net.Dial("udp4", "127.0.0.1:9")
		if err != nil {
			return err
		}
		_, err = c.Write([]byte("x"))
		_ = c.Close()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	listed := w.weft.Run(t, "nft", "-a", "list", "counters", "table", "ip", "shared")
	for _, a := range []*knft.Adapter{nft, other} {
		counters, err := a.ListCounters(aggregatortest.Context(t))
		if err != nil || len(counters) != 2 {
			t.Fatalf("counters %v, error %v: want 2", counters, err)
		}
		for _, c := range counters {
			if want := fmt.Sprintf("counter %s { # handle %d", c.Name, *c.Handle); !strings.Contains(listed, want) {
				t.Errorf("nft lists no %q:\n%s", want, listed)
			}
			if want := fmt.Sprintf("packets %d bytes %d\n", *c.Packets, *c.Bytes); *c.Packets == 0 || !strings.Contains(listed, want) {
				t.Errorf("counter %s has %q, nft lists:\n%s", c.Name, want, listed)
			}
			if (c.Name == "hits") != (c.Comment != nil && *c.Comment == "what left") {
				t.Errorf("counter %s has comment %v", c.Name, c.Comment)
			}
		}
	}
}
