package attack

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// Attacks on the time of the writer and the kernel: commits that take long.

const (
	// attackTime is how long an attack repeats what it does.
	attackTime = 4 * time.Second
	// pacedTime is how long an attack does whose first two commits are slow, until the
	// daemon makes the publisher pause: others make about 400 updates meanwhile.
	pacedTime = 20 * time.Second
)

// bigTable is a table of big with chains and sets.
func bigTable(content string) *weftv1.Fragment {
	return &weftv1.Fragment{Name: "rules", Nft: "table inet big {\n" + content + "}\n"}
}

// bigSet is a fragment of big with a set of addresses, to which a rule refers if hooked is
// true.
func bigSet(n int, hooked bool, key func(i int) string) *weftv1.Fragment {
	set := &weftv1.Set{Name: "s", Type: "ipv4_addr"}
	for i := range n {
		set.Elements = append(set.Elements, &weftv1.Element{Key: key(i)})
	}
	table := &weftv1.Table{Family: "inet", Name: "big", Sets: []*weftv1.Set{set}}
	if hooked {
		table.Chains = []*weftv1.Chain{{Name: "in", Type: "filter", Hook: "input", Priority: "filter", Rules: []*weftv1.Rule{{Text: "ip saddr @s drop"}}}}
	}
	return &weftv1.Fragment{Name: "rules", Tables: []*weftv1.Table{table}}
}

// applyFor applies fragments as big for a time, one after the other. It returns how many
// were committed and the last error.
func (h *host) applyFor(d time.Duration, fragment func(turn int) *weftv1.Fragment) (committed int, last error) {
	c := weftv1.NewPublisherClient(h.as(uidBig))
	ctx, cancel := context.WithTimeout(aggregatortest.Context(h.T), d)
	defer cancel()
	for turn := 0; ctx.Err() == nil; turn++ {
		if _, err := c.Apply(ctx, &weftv1.ApplyRequest{Fragment: fragment(turn)}); err != nil {
			last = err
			continue
		}
		committed++
	}
	return committed, last
}

// portSet is an anonymous set of n ranges of ports.
func portSet(n, first int) string {
	ports := make([]string, n)
	for i := range ports {
		ports[i] = fmt.Sprintf("%d-%d", first+3*i, first+3*i+1)
	}
	return "{ " + strings.Join(ports, ", ") + " }"
}

// TestPortSets applies rules with large anonymous sets, which cannot be staged.
func TestPortSets(t *testing.T) {
	h := newHost(t, options{})
	h.attack(func(h *host) {
		n, err := h.applyFor(pacedTime, func(turn int) *weftv1.Fragment {
			var rules strings.Builder
			for i := range 120 {
				fmt.Fprintf(&rules, "tcp dport %s counter\n", portSet(800, 1+i+turn))
			}
			return bigTable("chain in { type filter hook input priority 0; policy accept;\n" + rules.String() + "}\n")
		})
		h.observe("120 rules of 800 ranges of ports: %d commits in %v, then %v", n, pacedTime, status.Code(err))
	})
}

// concatenated is n elements of a set of concatenated ranges, which do not overlap.
func concatenated(n, turn int) string {
	elements := make([]string, n)
	for i := range elements {
		host := fmt.Sprintf("10.%d.%d", turn%200, i>>8&255)
		elements[i] = fmt.Sprintf("%s.%d-%s.%d . %d-%d", host, 2*(i&127), host, 2*(i&127)+1, 1+(i>>7&1)*30000, 30000+(i>>7&1)*30000)
	}
	return strings.Join(elements, ", ")
}

// TestConcatenatedRanges applies a set of 24,000 concatenated ranges.
func TestConcatenatedRanges(t *testing.T) {
	h := newHost(t, options{})
	h.attack(func(h *host) {
		n, err := h.applyFor(pacedTime, func(turn int) *weftv1.Fragment {
			return bigTable(fmt.Sprintf("set s%d { type ipv4_addr . inet_service; flags interval; elements = { %s } }\n", turn, concatenated(24_000, turn)))
		})
		h.observe("a set of 24,000 concatenated ranges: %d commits in %v, then %v", n, pacedTime, status.Code(err))
	})
}

// TestSlowPatches adds concatenated ranges to a set in force, in updates that look small.
func TestSlowPatches(t *testing.T) {
	h := newHost(t, options{})
	h.attack(func(h *host) {
		ctx, cancel := context.WithTimeout(aggregatortest.Context(h.T), pacedTime)
		defer cancel()
		stream, err := weftv1.NewPublisherClient(h.as(uidBig)).Publish(ctx)
		if err != nil {
			h.Fatal(err)
		}
		v := &victim{stream: stream}
		err = v.update(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Snapshot{Snapshot: bigTable(
			"set s { type ipv4_addr . inet_service; flags interval; }\nchain in { type filter hook input priority 0; policy accept;\nip saddr . tcp dport @s drop\n}\n")}})
		if err != nil {
			h.Fatal(err)
		}
		n := 0
		for ; err == nil; n++ {
			var add []*weftv1.Element
			for _, key := range strings.Split(concatenated(2000, n), ", ") {
				add = append(add, &weftv1.Element{Key: key})
			}
			err = v.update(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Patch{Patch: &weftv1.Patch{
				Fragment: "rules", Tables: []*weftv1.TablePatch{{Family: "inet", Name: "big", Elements: []*weftv1.ElementPatch{{Set: "s", Add: add}}}},
			}}})
		}
		h.observe("%d patches of 2,000 concatenated ranges in %v, then %v", n, pacedTime, err)
	})
}

// TestReplacedSets replaces all elements of a set in force, which cannot be staged.
func TestReplacedSets(t *testing.T) {
	h := newHost(t, options{})
	h.attack(func(h *host) {
		n, err := h.applyFor(pacedTime, func(turn int) *weftv1.Fragment {
			return bigSet(15_000, true, func(i int) string { return fmt.Sprintf("%d.0.%d.%d", 10+turn%2, i>>8, i&255) })
		})
		h.observe("all 15,000 elements of a set are replaced: %d commits in %v, then %v", n, pacedTime, status.Code(err))
	})
}

// TestAbandonedStagings begins large updates and gives them up. Nothing of them stays.
func TestAbandonedStagings(t *testing.T) {
	h := newHost(t, options{})
	h.attack(func(h *host) {
		f := bigSet(40_000, false, func(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) })
		c, n := weftv1.NewPublisherClient(h.as(uidBig)), 0
		for began := time.Now(); time.Since(began) < attackTime; {
			ctx, cancel := context.WithTimeout(aggregatortest.Context(h.T), 150*time.Millisecond)
			if _, err := c.Apply(ctx, &weftv1.ApplyRequest{Fragment: f}); status.Code(err) == codes.DeadlineExceeded {
				n++
			}
			cancel()
		}
		h.observe("%d updates of 40,000 elements are given up after 150 ms", n)
		// One that was complete in time may have been committed.
		_, err := c.Delete(aggregatortest.Context(h.T), &weftv1.DeleteRequest{Fragment: &weftv1.FragmentName{Publisher: "big", Name: "rules"}})
		if err != nil && status.Code(err) != codes.NotFound {
			h.Error(err)
		}
		if list := h.ns.ListRuleset(h.T); strings.Contains(list, "table inet big") {
			h.Errorf("%d bytes of ruleset are left", len(list))
		}
	})
}
