package aggregator_test

import (
	"os"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

// TestRecordOfNothing has a record that says less than the kernel: nothing is
// swept while the fragments that the rules name are away.
func TestRecordOfNothing(t *testing.T) {
	k := &aggregatortest.Kernel{}
	dir := t.TempDir()
	ctx := aggregatortest.Context(t)
	cfg := aggregator.Config{Kernel: k, StateDir: dir}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.1"))
	must(t, d.Stop())
	must(t, os.Remove(database(dir)))
	empty := openState(dir, func(string) {})
	_, err := empty.Load()
	must(t, err)
	must(t, empty.SaveRecord(statedir.Record{}, 1))
	must(t, empty.Close())
	d = aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	c := d.Dial(t, "other")
	mustApply(t, c, blocklist("other", "10.0.0.9"))
	list, err := c.List(ctx)
	if err != nil || len(list.GetFragments()) != 2 || list.GetFragments()[1].GetState() != weftv1.FragmentStatus_STATE_ADOPTED {
		t.Fatalf("list %v, error %v: want the fragment that the rules name as adopted", list, err)
	}
	commits := len(k.Commits())
	mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.1"))
	if n := len(k.Commits()); n != commits {
		t.Fatalf("%d commits after %d: the returning fragment is as it was", n, commits)
	}
}

// TestStandbyReadsTheRecordLast has a second daemon stand by while the first one
// goes on: what it adopts belongs to the fragments of then, not of its own start.
func TestStandbyReadsTheRecordLast(t *testing.T) {
	k, dir := &aggregatortest.Kernel{}, t.TempDir()
	first := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	c := first.Dial(t, "tester")
	mustApply(t, c, blocklist("one", "10.0.0.1"))
	k.SetOwned(&kernel.OwnedError{Table: demo, PID: 1, Process: "weft"})
	second := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Standby: true, Retry: 1e6}})
	aggregatortest.Eventually(t, "it stands by", func() bool { return second.Aggregator.Healthy() != nil })
	mustApply(t, c, blocklist("two", "10.0.0.2"))
	must(t, first.Stop())
	k.SetOwned(nil)
	<-second.Aggregator.Ready()
	// One of two returns: what the other one has stays.
	mustApply(t, second.Dial(t, "tester"), blocklist("one", "10.0.0.1"))
	wantElements(t, k, "10.0.0.1", "10.0.0.2")
	if fragments, _ := second.Aggregator.List(); len(fragments) != 2 || fragments[1].GetState() != weftv1.FragmentStatus_STATE_ADOPTED {
		t.Fatalf("fragments %v: want both, the second one adopted", fragments)
	}
}
