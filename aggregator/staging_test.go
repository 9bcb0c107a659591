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
			go func() {
				_, err := other.Apply(ctx, small)
				done <- err
			}()
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
	empty := func(t *testing.T, k *stepping) {
		t.Helper()
		aggregatortest.Eventually(t, "the kernel is empty", k.Empty)
	}
	t.Run("refused rule", func(t *testing.T) {
		k := &stepping{}
		k.Refuse = func(op kernel.Op) (syscall.Errno, string) {
			if _, ok := op.(kernel.AddRule); ok {
				return syscall.EINVAL, "no"
			}
			return 0, ""
		}
		d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
		var r *aggregator.RejectedError
		if err := apply(aggregatortest.Context(t), d); !errors.As(err, &r) || k.n.Load() < 3 {
			t.Fatalf("error %v after %d commits", err, k.n.Load())
		}
		empty(t, k)
	})
	t.Run("refused element", func(t *testing.T) {
		k := &stepping{}
		k.Refuse = func(op kernel.Op) (syscall.Errno, string) {
			if add, ok := op.(kernel.AddElements); ok && add.Elements[0].Key > "\x0b\x00\x40" {
				return syscall.EINVAL, "no"
			}
			return 0, ""
		}
		d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
		var r *aggregator.RejectedError
		if err := apply(aggregatortest.Context(t), d); !errors.As(err, &r) || k.n.Load() < 2 {
			t.Fatalf("error %v after %d commits", err, k.n.Load())
		}
		empty(t, k)
	})
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
		empty(t, k)
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
		if n := len(k.Elements(demo, "blocked")); n != manyElements {
			t.Errorf("%d elements", n)
		}
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
			_, err := d.Aggregator.Apply(aggregatortest.Context(t), "large", listOf("large", manyElements))
			must(t, err)
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
	_, err := d.Aggregator.Apply(aggregatortest.Context(t), "small", blocklist("small", "10.0.0.1"))
	must(t, err)
	must(t, d.Stop())
	want := k.String()
	table := nft.TableID{Family: nft.FamilyIP, Name: "staged"}
	decl, err := set.Compile(nft.FamilyIP, &nft.Set{Name: "left", Type: "ipv4_addr"})
	must(t, err)
	for _, id := range []nft.TableID{demo, table} {
		_, err := k.Commit([]kernel.Op{kernel.AddTable{Table: id}, kernel.AddSet{Table: id, Set: decl}, kernel.AddElements{Table: id, Set: decl, Elements: []set.Element{{Key: "abcd"}}}})
		must(t, err)
	}
	if !strings.Contains(k.String(), "left") {
		t.Fatal("there is nothing to remove")
	}
	aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	if got := k.String(); got != want {
		t.Errorf("kernel has\n%swant\n%s", got, want)
	}
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
				_, err := left.Commit(ops)
				must(t, err)
			}
		}
	}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	_, err := d.Aggregator.Apply(ctx, "large", listOf("large", manyElements))
	must(t, err)
	must(t, d.Stop())
	staged := len(left.Elements(demo, "blocked"))
	if staged == 0 || staged >= manyElements || len(left.Rules(demo, "input")) != 0 {
		t.Fatalf("the kill left %d elements and rules %v", staged, left.Rules(demo, "input"))
	}
	d = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: left}})
	if n := len(left.Elements(demo, "blocked")); n != staged {
		t.Errorf("the start has changed what was staged: %d elements", n)
	}
	_, err = d.Aggregator.Apply(ctx, "large", listOf("large", manyElements))
	must(t, err)
	if n := len(left.Elements(demo, "blocked")); n != manyElements || len(left.Rules(demo, "input")) != 1 {
		t.Errorf("%d elements, rules %v", n, left.Rules(demo, "input"))
	}
	_, err = d.Aggregator.Delete(ctx, "large", "large")
	must(t, err)
	if got := left.String(); got != "" {
		t.Errorf("after the deletion the kernel has\n%.1000s", got)
	}
}
