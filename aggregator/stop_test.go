package aggregator_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

// TestStopDrainsStreams stops a daemon that has hundreds of updates pending, a
// large one among them: all are committed and acknowledged before the stream ends.
func TestStopDrainsStreams(t *testing.T) {
	const small, large = 200, 6000
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Rate: 0.01, Burst: 1}})
	s := raw(t, d, "tester")
	wantCommitted(t, exchange(t, s, snapshotOf(1, blocklist("list"))))
	send := func(id uint64, add ...string) {
		t.Helper()
		must(t, s.Send(patchOf(id, patch("list", add, nil))))
	}
	for i := range small {
		if i == small/2 {
			var add []string
			for n := range large {
				add = append(add, fmt.Sprintf("10.1.%d.%d", n>>8, n&255))
			}
			send(2, add...)
		}
		send(3+uint64(i), fmt.Sprintf("10.0.0.%d", i)) //nolint:gosec // an index
	}
	aggregatortest.Eventually(t, "all of them wait", func() bool { return d.Aggregator.Pending() == small+1 })
	stopped := make(chan error, 1)
	go func() { stopped <- d.Stop() }()
	for range small + 1 {
		resp, err := s.Recv()
		must(t, err)
		wantCommitted(t, resp)
	}
	if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
		t.Fatalf("the stream ends with %v", err)
	}
	must(t, <-stopped)
	if n := len(k.Elements(demo, "blocked")); n != small+large {
		t.Fatalf("%d elements: want %d", n, small+large)
	}
}

// logLines collects a log.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// all returns the whole text.
func (l *logLines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// about returns the lines that name a fragment and say that it was refused.
func (l *logLines) about(fragment string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, "/"+fragment+" ") && (strings.Contains(line, "rejected") || strings.Contains(line, "refused")) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestRejectionIsLoggedOnce refuses updates at every stage: text, references, the
// kernel (with a batch that is tried again), and the restoration of what is stored.
func TestRejectionIsLoggedOnce(t *testing.T) {
	var log logLines
	k := &held{}
	poisoned := func(op kernel.Op) (syscall.Errno, string) {
		if c, ok := op.(kernel.AddChain); ok && strings.HasPrefix(c.Chain.Name, "poison") {
			return syscall.ENOENT, "no"
		}
		return 0, ""
	}
	k.Refuse = poisoned
	cfg := aggregator.Config{Kernel: k, StateDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	c := d.Dial(t, "tester")
	chain := func(name, chain, rule string) *weftv1.Fragment {
		return &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{
			Family: "ip", Name: name, Chains: []*weftv1.Chain{{Name: chain, Rules: []*weftv1.Rule{{Text: rule}}}},
		}}}
	}
	ctx := aggregatortest.Context(t)
	release := k.block(t)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = c.Apply(ctx, blocklist("busy", "10.0.0.1")) })
	aggregatortest.Eventually(t, "the writer is busy", k.busy)
	for _, f := range []*weftv1.Fragment{
		chain("typo", "c", "ip sadr 10.0.0.1 drop"), chain("dangling", "c", "jump nowhere"), chain("refused", "poison", "drop"),
		blocklist("good", "10.0.0.2"), chain("refused-too", "poison-2", "drop"),
	} {
		publisher := c
		if f.GetName() == "refused-too" {
			// The log has one line a minute for each publisher and reason.
			publisher = d.Dial(t, "other")
		}
		wg.Go(func() { _, _ = publisher.Apply(ctx, f) })
	}
	aggregatortest.Eventually(t, "four wait", func() bool { return d.Aggregator.Pending() == 4 })
	release()
	wg.Wait()

	// Stored while the kernel takes it, and refused at the next start.
	k.Refuse = nil
	for _, name := range []string{"stored", "stored-too"} {
		f := chain(name, "c", "drop")
		if name == "stored" {
			f = chain(name, "poison", "drop")
		}
		f.Lifetime = weftv1.Lifetime_LIFETIME_DURABLE
		mustApply(t, c, f)
	}
	must(t, d.Stop())
	cfg.Kernel = &aggregatortest.Kernel{Refuse: poisoned}
	must(t, aggregatortest.Start(t, aggregatortest.Config{Config: cfg}).Stop())
	for _, name := range []string{"typo", "dangling", "refused", "refused-too", "stored"} {
		if lines := log.about(name); len(lines) != 1 {
			t.Errorf("%s: %d lines: want one\n%s", name, len(lines), strings.Join(lines, ""))
		}
	}
}
