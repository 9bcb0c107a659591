package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// manyElements are more than one transaction has.
const manyElements = 50_000

// listOf returns a fragment with n elements in its set.
func listOf(name string, n int) *weftv1.Fragment {
	f := blocklist(name)
	set := f.Tables[0].Sets[0]
	for i := range n {
		set.Elements = append(set.Elements, &weftv1.Element{Key: fmt.Sprintf("11.%d.%d.%d", i>>16, i>>8&255, i&255)})
	}
	return f
}

// stepping is a kernel that calls step after each commit, with the number of commits.
type stepping struct {
	aggregatortest.Kernel
	// n counts commits, and most has the elements of the largest one.
	n, most atomic.Int64
	step    func(n int)
}

func (k *stepping) Commit(ops []kernel.Op) (kernel.Stats, error) {
	stats, err := k.Kernel.Commit(ops)
	if err != nil {
		return stats, err
	}
	for _, op := range ops {
		if add, ok := op.(kernel.AddElements); ok {
			stats.Elements += len(add.Elements)
		}
	}
	// Only the writer commits.
	k.most.Store(max(k.most.Load(), int64(stats.Elements)))
	if n := k.n.Add(1); k.step != nil {
		k.step(int(n))
	}
	return stats, nil
}

// TestLargeUpdateIsStaged has another publisher's update committed in the middle of one
// that is staged. Nothing of the large update is in force before its last transaction.
func TestLargeUpdateIsStaged(t *testing.T) {
	k := &stepping{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: t.TempDir()}})
	other, ctx := d.Dial(t, "other"), aggregatortest.Context(t)
	small := blocklist("small", "10.0.0.1")
	small.Tables[0].Name = "other"
	done := make(chan error, 1)
	var between atomic.Bool
	k.step = func(n int) {
		switch n {
		case 2:
			go func() { done <- errorOf(other.Apply(ctx, small)) }()
			aggregatortest.Eventually(t, "the small update waits", func() bool { return d.Aggregator.Pending() == 2 })
		default:
			if len(k.Rules(nft.TableID{Family: nft.FamilyIP, Name: "other"}, "input")) > 0 && len(k.Rules(demo, "input")) == 0 {
				between.Store(true)
			}
		}
	}
	r, err := d.Aggregator.Apply(ctx, "large", listOf("large", manyElements))
	must(t, err)
	must(t, <-done)
	if !between.Load() {
		t.Error("the small update waited for the large one")
	}
	if n := r.Changes.GetElementsAdded(); n != manyElements || len(k.Elements(demo, "blocked")) != manyElements || k.most.Load() > 16_384 {
		t.Errorf("%d elements are reported, the kernel has %d, and the largest transaction had %d", n, len(k.Elements(demo, "blocked")), k.most.Load())
	}
	if len(k.Rules(demo, "input")) != 1 {
		t.Errorf("kernel has\n%.1000s", k.String())
	}
}

// TestStagingLeavesNothing ends the staging of an update in several ways: what was
// staged is removed.
func TestStagingLeavesNothing(t *testing.T) {
	apply := func(ctx context.Context, d *aggregatortest.Daemon) error {
		_, err := d.Aggregator.Apply(ctx, "large", listOf("large", manyElements))
		return err
	}
	for _, tt := range []struct {
		name    string
		refuses func(op kernel.Op) bool
		commits int64
	}{
		{"refused rule", func(op kernel.Op) bool { _, ok := op.(kernel.AddRule); return ok }, 3},
		{"refused element", func(op kernel.Op) bool {
			add, ok := op.(kernel.AddElements)
			return ok && add.Elements[0].Key > "\x0b\x00\x40"
		}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := &stepping{}
			k.Refuse = func(op kernel.Op) (syscall.Errno, string) {
				if tt.refuses(op) {
					return syscall.EINVAL, "no"
				}
				return 0, ""
			}
			d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
			var r *aggregator.RejectedError
			if err := apply(aggregatortest.Context(t), d); !errors.As(err, &r) || k.n.Load() < tt.commits {
				t.Fatalf("error %v after %d commits", err, k.n.Load())
			}
			aggregatortest.Eventually(t, "the kernel is empty", k.Empty)
		})
	}
	t.Run("sender gone", func(t *testing.T) {
		k := &stepping{}
		ctx, cancel := context.WithCancel(aggregatortest.Context(t))
		k.step = func(n int) {
			if n == 2 {
				cancel()
			}
		}
		d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
		if err := apply(ctx, d); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
		aggregatortest.Eventually(t, "the kernel is empty", k.Empty)
	})
	t.Run("stop", func(t *testing.T) {
		// A stop commits pending updates.
		k := &stepping{}
		d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
		stopped := make(chan error, 1)
		k.step = func(n int) {
			if n == 2 {
				go func() { stopped <- d.Stop() }()
			}
		}
		must(t, apply(aggregatortest.Context(t), d))
		must(t, <-stopped)
		same(t, "elements", len(k.Elements(demo, "blocked")), manyElements)
	})
}

// TestStagingIsRepaired removes what is staged, and loses the outcome of a transaction.
func TestStagingIsRepaired(t *testing.T) {
	for name, harm := range map[string]func(k *stepping){
		"flush":   func(k *stepping) { k.Flush() },
		"unknown": func(k *stepping) { k.FailNext(kernel.ErrUnknownOutcome, true) },
		"lost":    func(k *stepping) { k.FailNext(kernel.ErrUnknownOutcome, false) },
	} {
		t.Run(name, func(t *testing.T) {
			k := &stepping{}
			k.step = func(n int) {
				if n == 3 {
					harm(k)
				}
			}
			d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
			applyAs(t, d, "large", listOf("large", manyElements))
			if n := len(k.Elements(demo, "blocked")); n != manyElements || len(k.Rules(demo, "input")) != 1 {
				t.Errorf("%d elements, rules %v", n, k.Rules(demo, "input"))
			}
		})
	}
}

// TestStagedIsRemovedAtStart starts with a set that an earlier run was staging, before
// any publisher is back.
func TestStagedIsRemovedAtStart(t *testing.T) {
	k, dir := &aggregatortest.Kernel{}, t.TempDir()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	applyAs(t, d, "small", blocklist("small", "10.0.0.1"))
	must(t, d.Stop())
	want := k.String()
	table := nft.TableID{Family: nft.FamilyIP, Name: "staged"}
	decl, err := set.Compile(nft.FamilyIP, &nft.Set{Name: "left", Type: "ipv4_addr"})
	must(t, err)
	for _, id := range []nft.TableID{demo, table} {
		must(t, errorOf(k.Commit([]kernel.Op{kernel.AddTable{Table: id}, kernel.AddSet{Table: id, Set: decl}, kernel.AddElements{Table: id, Set: decl, Elements: []set.Element{{Key: "abcd"}}}})))
	}
	if !strings.Contains(k.String(), "left") {
		t.Fatal("there is nothing to remove")
	}
	aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	same(t, "the kernel", k.String(), want)
}

// TestStagedWithoutARecord is killed while it stages, and has no state directory: what was
// staged stays without effect, until the publisher sends the fragment again.
func TestStagedWithoutARecord(t *testing.T) {
	ctx := aggregatortest.Context(t)
	k := &stepping{}
	left := &aggregatortest.Kernel{}
	k.step = func(n int) {
		if n == 2 {
			// What the kernel has if the process is killed now.
			for _, ops := range k.Commits() {
				must(t, errorOf(left.Commit(ops)))
			}
		}
	}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	applyAs(t, d, "large", listOf("large", manyElements))
	must(t, d.Stop())
	staged := len(left.Elements(demo, "blocked"))
	if staged == 0 || staged >= manyElements || len(left.Rules(demo, "input")) != 0 {
		t.Fatalf("the kill left %d elements and rules %v", staged, left.Rules(demo, "input"))
	}
	d = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: left}})
	same(t, "what was staged before the start", len(left.Elements(demo, "blocked")), staged)
	applyAs(t, d, "large", listOf("large", manyElements))
	if n := len(left.Elements(demo, "blocked")); n != manyElements || len(left.Rules(demo, "input")) != 1 {
		t.Errorf("%d elements, rules %v", n, left.Rules(demo, "input"))
	}
	must(t, errorOf(d.Aggregator.Delete(ctx, "large", "large")))
	same(t, "the kernel after the deletion", left.String(), "")
}
