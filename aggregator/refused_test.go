package aggregator_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

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
		if _, err := d.Aggregator.Delete(t.Context(), "p", name); err != nil {
			t.Fatal(err)
		}
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
	var log logLines
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
