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

// bigSet is a fragment of big with a set of n elements. A rule looks match up in it, if there is one.
func bigSet(set *weftv1.Set, match string, n int, key func(i int) string) *weftv1.Fragment {
	set.Name = "s"
	for i := range n {
		set.Elements = append(set.Elements, &weftv1.Element{Key: key(i)})
	}
	table := &weftv1.Table{Family: "inet", Name: "big", Sets: []*weftv1.Set{set}}
	if match != "" {
		rules := []*weftv1.Rule{{Text: match + " @s drop"}}
		table.Chains = []*weftv1.Chain{{Name: "in", Type: "filter", Hook: "input", Priority: "filter", Rules: rules}}
	}
	return &weftv1.Fragment{Name: "rules", Tables: []*weftv1.Table{table}}
}

// addresses is a set of n addresses.
func addresses(n int) *weftv1.Fragment { return bigSet(&weftv1.Set{Type: "ipv4_addr"}, "", n, address) }

func address(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) }

// slowCommits applies fragments as big for a time, one after the other.
func slowCommits(t *testing.T, what string, fragment func(turn int) *weftv1.Fragment) {
	t.Helper()
	attack(t, options{}, func(h *host) {
		c, committed := weftv1.NewPublisherClient(h.as(uidBig)), 0
		ctx, cancel := context.WithTimeout(aggregatortest.Context(h.T), pacedTime)
		defer cancel()
		var last error
		for turn := 0; ctx.Err() == nil; turn++ {
			if _, err := c.Apply(ctx, &weftv1.ApplyRequest{Fragment: fragment(turn)}); err != nil {
				last = err
			} else {
				committed++
			}
		}
		h.observe("%s: %d commits in %v, then %v", what, committed, pacedTime, status.Code(last))
	})
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
	slowCommits(t, "120 rules of 800 ranges of ports", func(turn int) *weftv1.Fragment {
		var rules strings.Builder
		for i := range 120 {
			fmt.Fprintf(&rules, "tcp dport %s counter\n", portSet(800, 1+i+turn))
		}
		return bigTable("chain in { type filter hook input priority 0; policy accept;\n" + rules.String() + "}\n")
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
	slowCommits(t, "a set of 24,000 concatenated ranges", func(turn int) *weftv1.Fragment {
		elements := concatenated(24_000, turn)
		return bigTable(fmt.Sprintf("set s%d { type ipv4_addr . inet_service; flags interval; elements = { %s } }\n", turn, elements))
	})
}

// TestSlowPatches adds concatenated ranges to a set in force, in updates that look small.
func TestSlowPatches(t *testing.T) {
	attack(t, options{}, func(h *host) {
		ctx, cancel := context.WithTimeout(aggregatortest.Context(h.T), pacedTime)
		defer cancel()
		v := h.stream(ctx, uidBig)
		err := v.put(bigTable("set s { type ipv4_addr . inet_service; flags interval; }\n" +
			"chain in { type filter hook input priority 0; policy accept;\nip saddr . tcp dport @s drop\n}\n"))
		must(h.T, err)
		n := 0
		for ; err == nil; n++ {
			var add []*weftv1.Element
			for _, key := range strings.Split(concatenated(2000, n), ", ") {
				add = append(add, &weftv1.Element{Key: key})
			}
			err = v.patch("rules", &weftv1.TablePatch{Family: "inet", Name: "big", Elements: []*weftv1.ElementPatch{{Set: "s", Add: add}}})
		}
		h.observe("%d patches of 2,000 concatenated ranges in %v, then %v", n, pacedTime, err)
	})
}

// TestReplacedSets replaces all elements of a set in force, which cannot be staged.
func TestReplacedSets(t *testing.T) {
	slowCommits(t, "all 15,000 elements of a set are replaced", func(turn int) *weftv1.Fragment {
		return bigSet(&weftv1.Set{Type: "ipv4_addr"}, "ip saddr", 15_000, func(i int) string { return address(i + turn%2<<16) })
	})
}

// TestAbandonedStagings begins large updates and gives them up. Nothing of them stays.
func TestAbandonedStagings(t *testing.T) {
	attack(t, options{}, func(h *host) {
		f, c, n := addresses(40_000), weftv1.NewPublisherClient(h.as(uidBig)), 0
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
