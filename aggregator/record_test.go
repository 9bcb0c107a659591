package aggregator_test

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

func inputChain() *weftv1.Chain {
	return &weftv1.Chain{Name: "input", Type: "filter", Hook: "input", Priority: "filter", Policy: "drop", Rules: []*weftv1.Rule{{Text: "iif lo accept"}}}
}

// TestRefusedPatchLeavesNoTrace has a patch with a wrong rule delete a base chain.
// The chain and its declaration must be in the content that Get returns, and in
// what a reboot restores, after a later patch was committed.
func TestRefusedPatchLeavesNoTrace(t *testing.T) {
	dir := t.TempDir()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir}})
	table := func() *weftv1.TablePatch { return &weftv1.TablePatch{Family: "ip", Name: "demo"} }
	s := raw(t, d, "tester")
	wantCommitted(t, exchange(t, s, snapshotOf(1, &weftv1.Fragment{
		Name: "firewall", Lifetime: weftv1.Lifetime_LIFETIME_DURABLE,
		Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Chains: []*weftv1.Chain{inputChain()}}},
	})))
	wrong := table()
	wrong.DeleteChains = []string{"input"}
	wrong.PutChains = []*weftv1.Chain{{Name: "x", Rules: []*weftv1.Rule{{Text: "jump nowhere"}}}}
	wantReason(t, exchange(t, s, patchOf(2, &weftv1.Patch{Fragment: "firewall", Tables: []*weftv1.TablePatch{wrong}})), weftv1.Violation_REASON_REFERENCE)
	right := table()
	right.PutChains = []*weftv1.Chain{{Name: "y", Rules: []*weftv1.Rule{{Text: "accept"}}}}
	wantCommitted(t, exchange(t, s, patchOf(3, &weftv1.Patch{Fragment: "firewall", Tables: []*weftv1.TablePatch{right}})))
	wantInput := func(what string, d *aggregatortest.Daemon) {
		t.Helper()
		got, err := d.Dial(t, "tester").Get(aggregatortest.Context(t), "", "firewall")
		must(t, err)
		chains := got.GetFragment().GetTables()[0].GetChains()
		if len(chains) != 2 || !proto.Equal(chains[0], inputChain()) {
			t.Errorf("%s: chains are %v, want %v first", what, chains, inputChain())
		}
	}
	wantInput("after the patch", d)
	must(t, d.Stop())
	// A reboot: the kernel is empty, and the fragment comes from the state directory.
	wantInput("after a reboot", aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir}}))
}

// TestPatchBeforeTheEndOfARefusedBatch ends a stream after a patch, in the batch
// in which the kernel refuses the update of another publisher: the patch must be
// committed.
func TestPatchBeforeTheEndOfARefusedBatch(t *testing.T) {
	k := &held{}
	k.Refuse = func(op kernel.Op) (syscall.Errno, string) {
		if c, ok := op.(kernel.AddChain); ok && c.Chain.Name == "poison" {
			return syscall.EINVAL, "no"
		}
		return 0, ""
	}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	c := d.Dial(t, "other")
	s := raw(t, d, "tester")
	wantCommitted(t, exchange(t, s, snapshotOf(1, blocklist("stays", "10.0.0.1"))))
	release := k.block(t)
	apply := func(f *weftv1.Fragment) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := c.Apply(aggregatortest.Context(t), f)
			done <- err
		}()
		return done
	}
	first := apply(blocklist("busy", "10.0.0.2"))
	aggregatortest.Eventually(t, "the writer is busy", k.busy)
	must(t, s.Send(patchOf(2, patch("stays", []string{"10.0.0.3"}, nil))))
	must(t, s.CloseSend())
	aggregatortest.Eventually(t, "the session has ended", func() bool { return d.Aggregator.Pending() == 2 })
	poison := apply(&weftv1.Fragment{Name: "poison", Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Chains: []*weftv1.Chain{{Name: "poison"}}}}})
	aggregatortest.Eventually(t, "the poison waits", func() bool { return d.Aggregator.Pending() == 3 })
	release()
	must(t, <-first)
	rejection(t, <-poison, weftv1.Violation_REASON_KERNEL)
	answer, err := s.Recv()
	must(t, err)
	wantCommitted(t, answer)
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	wantElements(t, &k.Kernel, "10.0.0.1", "10.0.0.2", "10.0.0.3")
}
