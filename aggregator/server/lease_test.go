package server_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestHungPublisherLosesItsLease stops a publisher without killing it: its
// connection stays open without an answer. When it continues, it comes back by itself.
func TestHungPublisherLosesItsLease(t *testing.T) {
	k := &aggregatortest.Kernel{}
	a, err := aggregator.New(aggregator.Config{Kernel: k})
	if err != nil {
		t.Fatal(err)
	}
	socket := aggregatortest.Socket(t)
	s, err := server.Listen(server.Config{Socket: socket, Aggregator: a, KeepaliveTime: time.Second, KeepaliveTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = a.Run(t.Context()) })
	wg.Go(func() { _ = s.Serve(t.Context()) })
	t.Cleanup(wg.Wait)

	p := startProcess(t, socket, "agent", true)
	p.tell(t, "brief session 10.0.0.1")
	p.hear(t, "put brief")
	p.tell(t, "stays sticky 10.0.0.2")
	p.hear(t, "put stays")
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := p.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	aggregatortest.Eventually(t, "the session's fragment is withdrawn", func() bool { return k.Elements(demo, "brief") == nil })
	if got := fmt.Sprint(k.Elements(demo, "stays")); got != "[10.0.0.2]" {
		t.Fatalf("sticky fragment holds %s", got)
	}
	signal(syscall.SIGCONT)
	aggregatortest.Eventually(t, "the publisher is back", func() bool { return len(k.Elements(demo, "brief")) == 1 })
	p.tell(t, "stays sticky 10.0.0.3")
	p.hear(t, "put stays")
	if got := fmt.Sprint(k.Elements(demo, "stays")); got != "[10.0.0.3]" {
		t.Fatalf("sticky fragment holds %s", got)
	}
}

func TestLeaseIsChecked(t *testing.T) {
	a, err := aggregator.New(aggregator.Config{Kernel: &aggregatortest.Kernel{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []server.Config{
		{Aggregator: a, KeepaliveTime: time.Millisecond},
		{Aggregator: a, KeepaliveTimeout: -time.Second},
		{},
	} {
		cfg.Socket = aggregatortest.Socket(t)
		if s, err := server.Listen(cfg); err == nil {
			_ = s.Close()
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
