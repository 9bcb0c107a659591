package aggregator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// bansOf is a durable fragment with elements that have timeouts.
func bansOf(elements ...*weftv1.Element) *weftv1.Fragment {
	return durable(&weftv1.Fragment{Name: "bans", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Sets: []*weftv1.Set{{Name: "bans", Type: "ipv4_addr", Flags: []string{"timeout"}, Elements: elements}},
	}}})
}

func banned(key string, timeout time.Duration) *weftv1.Element {
	return &weftv1.Element{Key: key, Timeout: durationpb.New(timeout)}
}

// kernelBans returns what is left of the time of the kernel's elements.
func kernelBans(ctx context.Context, t *testing.T, d *aggregatortest.Daemon) map[string]time.Duration {
	t.Helper()
	table, err := d.Dial(t, "tester").GetTable(ctx, &weftv1.GetTableRequest{Family: "ip", Name: "demo", Live: true})
	must(t, err)
	left := map[string]time.Duration{}
	for _, s := range table.GetSets() {
		for _, e := range slices.Concat(s.GetSet().GetElements(), s.GetAdded()) {
			left[e.GetKey()] = e.GetState().GetExpires().AsDuration()
		}
	}
	return left
}

// TestKernelLifetimes states, removes and restates elements of a durable fragment at random while they expire,
// another program deletes them, weft restarts, and the machine restarts with another clock. After each step the
// kernel has what a model has, with the same time left.
func TestKernelLifetimes(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	const short, near = time.Second, 2 * time.Minute
	ctx, dir, seed := aggregatortest.Context(t), t.TempDir(), uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	t.Logf("seed %d", seed)
	// shift is how far the clock is ahead: restarts of the machine change it.
	shift := time.Duration(0)
	start := func(ns *nfttest.NS) *aggregatortest.Daemon {
		by := shift
		d, _ := startKernel(t, ns, aggregator.Config{StateDir: dir, Now: func() time.Time { return time.Now().Add(by) }}, true)
		return d
	}
	ns := nfttest.New(t)
	d := start(ns)
	model := map[string]time.Time{} // by time.Now
	keys := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}
	stream := raw(t, d, "tester")
	snapshot := func() {
		model = map[string]time.Time{}
		var elements []*weftv1.Element
		for _, key := range keys[:rng.IntN(len(keys)+1)] {
			elements, model[key] = append(elements, banned(key, time.Hour)), time.Now().Add(time.Hour)
		}
		wantCommitted(t, exchange(t, stream, snapshotOf(1, bansOf(elements...))))
	}
	snapshot()
	steps := map[string]int{}
	for i := range 40 {
		step := []string{"snapshot", "patch", "patch", "short", "foreign", "restart", "reboot", "refused"}[rng.IntN(8)]
		steps[step]++
		key, other := keys[rng.IntN(3)], keys[rng.IntN(3)]
		change := func(add *weftv1.Element, remove ...string) *weftv1.PublishResponse {
			return exchange(t, stream, patchOf(2, &weftv1.Patch{Fragment: "bans", Tables: []*weftv1.TablePatch{{Family: "ip", Name: "demo", Elements: []*weftv1.ElementPatch{{
				Set: "bans", Add: []*weftv1.Element{add}, Remove: remove,
			}}}}}))
		}
		switch step {
		case "snapshot":
			snapshot()
		case "patch":
			timeout := []time.Duration{time.Hour, 2 * time.Hour}[rng.IntN(2)]
			delete(model, other)
			model[key] = time.Now().Add(timeout)
			wantCommitted(t, change(banned(key, timeout), other))
		case "short":
			wantCommitted(t, change(banned(key, short)))
			delete(model, key)
			aggregatortest.Eventually(t, "the element expires", func() bool {
				_, ok := kernelBans(ctx, t, d)[key]
				list, _ := d.Aggregator.List()
				return !ok && list[0].GetElements() == uint64(len(model))
			})
			if rng.IntN(2) == 0 {
				model[key] = time.Now().Add(time.Hour)
				wantCommitted(t, change(banned(key, time.Hour)))
			}
		case "foreign":
			if _, ok := model[key]; ok {
				ns.Nft(t, "delete element ip demo bans { "+key+" }\n")
				aggregatortest.Eventually(t, "the element is back", func() bool { return strings.Contains(ns.ListRuleset(t), key) })
			}
		case "restart", "reboot":
			must(t, d.Stop())
			if step == "reboot" {
				ns = nfttest.New(t)
				by := []time.Duration{0, 30 * time.Minute, -time.Minute}[rng.IntN(3)]
				shift += by
				for key, at := range model {
					if model[key] = at.Add(-by); at.Add(-by).Before(time.Now().Add(near)) {
						delete(model, key)
					}
				}
			}
			d = start(ns)
			stream = raw(t, d, "tester")
			compare(ctx, t, d, fmt.Sprintf("step %d %s", i, step), model)
			snapshot()
		case "refused":
			if r := change(banned("192.0.2.300", time.Hour)); r.GetRejected() == nil {
				t.Fatalf("answer %v", r)
			}
		}
		compare(ctx, t, d, fmt.Sprintf("step %d %s", i, step), model)
	}
	t.Logf("steps %v", steps)
}

// compare compares the kernel, the counts and the listing with a model.
func compare(ctx context.Context, t *testing.T, d *aggregatortest.Daemon, what string, model map[string]time.Time) {
	t.Helper()
	left := kernelBans(ctx, t, d)
	if len(left) != len(model) {
		t.Fatalf("%s: kernel %v, want %v", what, left, model)
	}
	for key, at := range model {
		// A clock that was set back gives at most the timeout.
		if diff := left[key] - time.Until(at); diff > 5*time.Second || diff < -70*time.Second {
			t.Fatalf("%s: %s has %v left, want %v", what, key, left[key], time.Until(at))
		}
	}
	answer, err := d.Dial(t, "tester").Get(ctx, "", "bans")
	must(t, err)
	if n := len(answer.GetFragment().GetTables()[0].GetSets()[0].GetElements()); n != len(model) || answer.GetStatus().GetElements() != uint64(n) {
		t.Fatalf("%s: %d are listed and %d counted, want %d", what, n, answer.GetStatus().GetElements(), len(model))
	}
}

// TestElementThatPacketsAdd states an element that a packet has added, and one that a packet renews.
func TestElementThatPacketsAdd(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns, ctx := nfttest.New(t), aggregatortest.Context(t)
	d, _ := startKernel(t, ns, aggregator.Config{}, false)
	f := func(elements ...*weftv1.Element) *weftv1.Fragment {
		return &weftv1.Fragment{Name: "bans", Tables: []*weftv1.Table{{
			Family: "ip", Name: "demo",
			Sets: []*weftv1.Set{{Name: "bans", Type: "ipv4_addr", Flags: []string{"timeout", "dynamic"}, Size: 100, Elements: elements}},
			Chains: []*weftv1.Chain{{Name: "input", Type: "filter", Hook: "input", Priority: "filter",
				Rules: []*weftv1.Rule{{Text: "add @bans { ip saddr timeout 10m }"}}}},
		}}}
	}
	c := d.Dial(t, "tester")
	mustApply(t, c, f())
	sendUDP(t, ns, 1)
	if left := kernelBans(ctx, t, d)["127.0.0.1"]; left > 10*time.Minute || left < 5*time.Minute {
		t.Fatalf("a packet gave %v", left)
	}
	for range 2 {
		mustApply(t, c, f(banned("127.0.0.1", time.Hour)))
		if left := kernelBans(ctx, t, d)["127.0.0.1"]; left < 50*time.Minute {
			t.Fatalf("%v is left of an element that is stated", left)
		}
	}
	owner, err := c.Owner(ctx, &weftv1.OwnerRequest{Object: &weftv1.ObjectName{Kind: "element", Family: "ip", Table: "demo", Name: "bans", Key: "127.0.0.1"}})
	if err != nil || !strings.Contains(owner.GetOwners()[0].GetText(), "127.0.0.1 expires ") {
		t.Errorf("owner %v, error %v", owner, err)
	}
}
