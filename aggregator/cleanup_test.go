package aggregator_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

func TestCleanup(t *testing.T) {
	k, dir := &aggregatortest.Kernel{}, t.TempDir()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Rate: 0.01, Burst: 1}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	mustApply(t, c, blocklist("list", "10.0.0.1"))
	waiting := make(chan error, 1)
	go func() {
		_, err := c.Apply(ctx, blocklist("waits", "10.0.0.2"))
		waiting <- err
	}()
	aggregatortest.Eventually(t, "an update waits for its turn", func() bool { return d.Aggregator.Pending() == 1 })
	k.FailNext(syscall.EPERM, false)
	if _, err := c.Cleanup(ctx); err == nil {
		t.Fatal("the kernel's refusal is not an error")
	}
	wantElements(t, k, "10.0.0.1")
	tables, err := c.Cleanup(ctx)
	if err != nil || len(tables) != 1 || tables[0] != "ip demo" {
		t.Fatalf("removed %v, error %v", tables, err)
	}
	if err := <-waiting; !errors.Is(err, client.ErrUnavailable) {
		t.Fatalf("update that waited: %v", err)
	}
	if err := d.Stop(); !errors.Is(err, aggregator.ErrCleanedUp) {
		t.Fatalf("run returned %v", err)
	}
	if got := k.String(); got != "" {
		t.Fatalf("kernel still holds %s", got)
	}
	if c, _ := state(t, dir); c.Trusted {
		t.Fatal("the record is still there")
	}
	// The next start knows of nothing.
	d = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	if list, _ := d.Aggregator.List(); len(list) != 0 {
		t.Fatalf("fragments %v", list)
	}
}

func TestCleanupNeedsTheTables(t *testing.T) {
	k := &aggregatortest.Kernel{}
	k.SetOwned(&kernel.OwnedError{Table: demo, PID: 1, Process: "weft"})
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Standby: true}})
	aggregatortest.Eventually(t, "it stands by", func() bool { return errors.Is(d.Aggregator.Healthy(), aggregator.ErrStandby) })
	if _, err := d.Aggregator.Cleanup(aggregatortest.Context(t)); !errors.Is(err, aggregator.ErrStandby) {
		t.Fatalf("one that stands by: %v", err)
	}
}
