package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// within retries f for at most d, and returns the time it took.
func within(t *testing.T, ctx context.Context, d time.Duration, what string, f func() error) time.Duration {
	t.Helper()
	start := time.Now()
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return time.Since(start)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v; last: %v", what, ctx.Err(), err)
		case <-deadline.C:
			t.Fatalf("%s: not within %s; last: %v", what, d, err)
		case <-tick.C:
		}
	}
}

type asker interface {
	Name() string
	Ask(ctx context.Context, network string, to netip.AddrPort, timeout time.Duration) (lab.Answer, error)
	Open(ctx context.Context, network string, to netip.AddrPort, port uint16) (*lab.Conversation, error)
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

// Behind a veth, a TCP client whose first packet is rejected by ICMP during connect learns it only from
// its second packet, a second later.
const prompt = 1500 * time.Millisecond

// refused waits until the connection is refused, and fails if the refusal is late.
func (e *env) refused(t *testing.T, from asker, network string, to netip.AddrPort) {
	t.Helper()
	var took time.Duration
	within(t, e.ctx, settled, fmt.Sprintf("%s %s from %s is refused", network, to, from.Name()), func() error {
		start := time.Now()
		_, err := from.Ask(e.ctx, network, to, 2*prompt)
		if err == nil {
			return errors.New("it was answered")
		}
		// A UDP packet rejected at its sender fails in the write; other rejections are port
		// unreachable.
		if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EPERM) {
			return err
		}
		if took = time.Since(start); took > prompt {
			return fmt.Errorf("it took %s", took)
		}
		return nil
	})
	t.Logf("%s %s from %s: refused in %s", network, to, from.Name(), took.Round(time.Millisecond))
}

type question struct {
	from    asker
	network string
	to      netip.AddrPort
}

// dropped waits until each question gets neither an answer nor a refusal. All are asked at once,
// because each lasts until its timeout.
func (e *env) dropped(t *testing.T, questions ...question) {
	t.Helper()
	within(t, e.ctx, settled, "packets are dropped", func() error {
		lost := make([]error, len(questions))
		var all sync.WaitGroup
		for i, q := range questions {
			all.Go(func() { lost[i] = e.isDropped(q) })
		}
		all.Wait()
		return errors.Join(lost...)
	})
}

func (e *env) isDropped(q question) error {
	// Longer than a refusal may take.
	a, err := q.from.Ask(e.ctx, q.network, q.to, prompt)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return nil
	}
	if err == nil {
		err = errors.New(a.Pod + " answered")
	}
	return fmt.Errorf("%s %s from %s: %w", q.network, q.to, q.from.Name(), err)
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

// client returns the source address that the servers see.
func (e *env) client(t *testing.T, from asker, network string, to netip.AddrPort) netip.Addr {
	t.Helper()
	a, err := from.Ask(e.ctx, network, to, answerTime)
	if err != nil {
		t.Fatal(err)
	}
	return a.Client.Addr()
}

// the named port of a node, over IPv4
func (e *env) nodePortOf(node int, s *service, port string) netip.AddrPort {
	return netip.AddrPortFrom(e.lab.Nodes[node].Addresses.V4, s.nodePort(port))
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
