package aggregator_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
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
	same(t, "elements", len(k.Elements(demo, "blocked")), small+large)
}

// refusalsOf returns the lines of a log that name a fragment and say that it was refused.
func refusalsOf(log, fragment string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "/"+fragment+" ") && (strings.Contains(line, "rejected") || strings.Contains(line, "refused")) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestRejectionIsLoggedOnce refuses updates at every stage: text, references, the
// kernel (with a batch that is tried again), and the restoration of what is stored.
func TestRejectionIsLoggedOnce(t *testing.T) {
	var log logText
	k := &held{}
	k.Refuse = refusePoison(syscall.ENOENT)
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
	cfg.Kernel = &aggregatortest.Kernel{Refuse: refusePoison(syscall.ENOENT)}
	must(t, aggregatortest.Start(t, aggregatortest.Config{Config: cfg}).Stop())
	for _, name := range []string{"typo", "dangling", "refused", "refused-too", "stored"} {
		if lines := refusalsOf(log.all(), name); len(lines) != 1 {
			t.Errorf("%s: %d lines: want one\n%s", name, len(lines), strings.Join(lines, ""))
		}
	}
}

// TestGoneFragmentsAreForgotten has snapshots refused and withdrawn, and keeps nothing of
// them in the session.
func TestGoneFragmentsAreForgotten(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Rate: 1e6, Burst: 1000}})
	s, err := d.Aggregator.Session("p", 1, 0)
	must(t, err)
	defer s.Close()
	id := uint64(0)
	push := func(req *weftv1.PublishRequest) error {
		t.Helper()
		id++
		req.Id = id
		result, err := s.Push(req)
		must(t, err)
		return (<-result).Err
	}
	fragment := func(name, rule string) *weftv1.PublishRequest {
		return snapshotOf(0, &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{
			Family: "ip", Name: name, Sets: []*weftv1.Set{{Name: "s", Type: "ipv4_addr"}}, Chains: []*weftv1.Chain{{Name: "c", Rules: []*weftv1.Rule{{Text: rule}}}},
		}}})
	}
	remembered := func(what string, want int) {
		t.Helper()
		aggregatortest.Eventually(t, what, func() bool { return s.Remembered() == want })
	}
	for i := range 100 {
		if push(fragment(fmt.Sprintf("refused%d", i), "jump nowhere")) == nil {
			t.Fatal("a jump to no chain is accepted")
		}
	}
	remembered("refused snapshots are forgotten", 0)
	for i := range 10 {
		name := fmt.Sprintf("deleted%d", i)
		must(t, push(fragment(name, "accept")))
		must(t, errorOf(d.Aggregator.Delete(t.Context(), "p", name)))
	}
	remembered("deleted fragments are forgotten", 0)
	// A fragment that stays keeps its declarations, also after a refused update.
	must(t, push(fragment("stays", "accept")))
	if push(fragment("stays", "jump nowhere")) == nil {
		t.Fatal("a jump to no chain is accepted")
	}
	remembered("one fragment stays", 1)
	must(t, push(fragment("stays", "drop")))
	if err := push(patchOf(0, &weftv1.Patch{Fragment: "stays", Tables: []*weftv1.TablePatch{{Family: "ip", Name: "stays", Elements: []*weftv1.ElementPatch{{
		Set: "s", Add: []*weftv1.Element{{Key: "10.0.0.1"}},
	}}}}})); err != nil {
		t.Errorf("a patch of a fragment that stays: %v", err)
	}
}

// TestRejectionsAreLoggedOnceAMinute counts the lines of the log.
func TestRejectionsAreLoggedOnceAMinute(t *testing.T) {
	var log logText
	var mu sync.Mutex
	now := time.Unix(1e9, 0)
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{
		Kernel: &aggregatortest.Kernel{}, Rate: 1e6, Burst: 1000, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		},
	}})
	refuse := func(n int, publisher, rule string) {
		for range n {
			_, err := d.Aggregator.Apply(t.Context(), publisher, &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{
				Family: "ip", Name: "t", Chains: []*weftv1.Chain{{Name: "c", Rules: []*weftv1.Rule{{Text: rule}}}},
			}}})
			if err == nil {
				t.Fatal("the update is accepted")
			}
		}
	}
	refuse(50, "a", "nonsense (")
	refuse(50, "a", "jump nowhere")
	refuse(50, "b", "jump nowhere")
	mu.Lock()
	now = now.Add(time.Minute)
	mu.Unlock()
	refuse(50, "b", "jump nowhere")
	if n := strings.Count(log.all(), "update rejected"); n != 4 {
		t.Errorf("%d lines: want 4\n%s", n, log.all())
	}
	if !strings.Contains(log.all(), "not_logged=49") {
		t.Errorf("the log does not count:\n%s", log.all())
	}
	// What was not logged is counted at the end at the latest.
	must(t, d.Stop())
	for _, publisher := range []string{"a", "b"} {
		if want := `"more updates rejected" publisher=` + publisher; strings.Count(log.all(), want) == 0 {
			t.Errorf("the log does not have %s:\n%s", want, log.all())
		}
	}
}
