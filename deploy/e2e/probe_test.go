package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// within retries f for at most d, and returns the time it took.
func within(t *testing.T, ctx context.Context, d time.Duration, what string, f func() error) time.Duration {
	t.Helper()
	start := time.Now()
	if err := lab.Within(ctx, d, f); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return time.Since(start)
}

type asker interface {
	Name() string
	Ask(ctx context.Context, network string, to netip.AddrPort, timeout time.Duration) (lab.Answer, error)
}

// answerTime bounds one question. An answer takes microseconds.
const answerTime = time.Second

// only asks n times and returns an error unless exactly these pods answer, each at least a quarter of
// an even share.
func (e *env) only(from asker, network string, to netip.AddrPort, n int, pods ...*lab.Pod) error {
	count := map[string]int{}
	for _, p := range pods {
		count[p.Name()] = 0
	}
	for range n {
		a, err := from.Ask(e.ctx, network, to, answerTime)
		if err != nil {
			return err
		}
		if _, ok := count[a.Pod]; !ok {
			return fmt.Errorf("%s %s from %s: answered by %s, want one of %s", network, to, from.Name(), a.Pod, names(pods))
		}
		count[a.Pod]++
	}
	for _, pod := range slices.Sorted(maps.Keys(count)) {
		if got, least := count[pod], n/len(pods)/4; got < least {
			return fmt.Errorf("%s %s from %s: %s answered %d times of %d, want at least %d", network, to, from.Name(), pod, got, n, least)
		}
	}
	return nil
}

// settled bounds the time until a change is visible. It takes some tens of milliseconds; the rest is
// for a busy machine.
const settled = time.Minute

// spread waits until exactly these pods answer.
func (e *env) spread(t *testing.T, from asker, network string, to netip.AddrPort, pods ...*lab.Pod) {
	t.Helper()
	within(t, e.ctx, settled, fmt.Sprintf("%s %s from %s reaches %s", network, to, from.Name(), names(pods)), func() error {
		// A cheap question first: before rules exist, each question waits for its timeout.
		if _, err := from.Ask(e.ctx, network, to, 200*time.Millisecond); err != nil {
			return err
		}
		return e.only(from, network, to, 24*len(pods), pods...)
	})
}

// silent waits until there is no answer, whatever the error.
func (e *env) silent(t *testing.T, from asker, network string, to netip.AddrPort) {
	t.Helper()
	within(t, e.ctx, settled, fmt.Sprintf("%s %s from %s has no answer", network, to, from.Name()), func() error {
		if a, err := from.Ask(e.ctx, network, to, 200*time.Millisecond); err == nil {
			return fmt.Errorf("%s answered", a.Pod)
		}
		return nil
	})
}

// the first port of a Service at a node, over IPv4
func (e *env) nodePortOf(node int, s *service) netip.AddrPort {
	return netip.AddrPortFrom(e.lab.Nodes[node].Addresses.V4, uint16(s.Spec.Ports[0].NodePort))
}

func names(pods []*lab.Pod) string {
	var all []string
	for _, p := range pods {
		all = append(all, p.Name())
	}
	return strings.Join(all, ", ")
}

// traces returns the lines with a word in any node's ruleset.
func (e *env) traces(t *testing.T, words ...string) []string {
	t.Helper()
	var found []string
	for _, d := range e.daemons {
		text, err := d.ruleset(e.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			for _, w := range words {
				if strings.Contains(line, w) {
					found = append(found, d.node.Name()+": "+strings.TrimSpace(line))
				}
			}
		}
	}
	return found
}
