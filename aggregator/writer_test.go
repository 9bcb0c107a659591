package aggregator_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

func TestApplyPatchAndDelete(t *testing.T) {
	k, d := inMemory(t)
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	first, err := c.Apply(ctx, blocklist("list", "10.0.0.1", "10.0.0.2"))
	must(t, err)
	wantElements(t, k, "10.0.0.1", "10.0.0.2")
	handles := k.Handles(demo, "input")

	again, err := c.Apply(ctx, blocklist("list", "10.0.0.2", "10.0.0.1"))
	if err != nil || again != first || len(k.Commits()) != 1 {
		t.Fatalf("unchanged fragment: revision %d, error %v, %d commits: want revision %d and one commit", again, err, len(k.Commits()), first)
	}

	s := session(t, c, func(string) *weftv1.Fragment { return blocklist("list", "10.0.0.1") })
	must(t, errorOf(s.Put(ctx, blocklist("list", "10.0.0.1"))))
	rev, err := s.Patch(ctx, patch("list", []string{"10.0.0.9"}, []string{"10.0.0.1"}))
	if err != nil || rev <= first {
		t.Fatalf("patch: revision %d, error %v", rev, err)
	}
	wantElements(t, k, "10.0.0.9")
	if got := k.Handles(demo, "input"); !slices.Equal(got, handles) {
		t.Fatalf("rule handles %v became %v", handles, got)
	}
	got, err := c.Get(ctx, "", "list")
	must(t, err)
	if st := got.GetStatus(); st.GetRevision() != rev || st.GetElements() != 1 || st.GetRules() != 1 || st.GetState() != weftv1.FragmentStatus_STATE_COMMITTED {
		t.Fatalf("status %v", st)
	}
	table := got.GetFragment().GetTables()[0]
	if table.GetSets()[0].GetType() != "ipv4_addr" || table.GetSets()[0].GetElements()[0].GetKey() != "10.0.0.9" || table.GetChains()[0].GetPriority() != "filter" {
		t.Fatalf("content %v", table)
	}
	must(t, errorOf(c.Delete(ctx, "", "list")))
	same(t, "the kernel", k.String(), "")
	if _, err := c.Delete(ctx, "", "list"); !errors.Is(err, client.ErrNotFound) {
		t.Fatalf("second delete: %v", err)
	}
	if _, err := c.Get(ctx, "", "list"); !errors.Is(err, client.ErrNotFound) {
		t.Fatalf("get of a deleted fragment: %v", err)
	}
}

func TestRejectionKeepsCommittedContent(t *testing.T) {
	k, d := inMemory(t)
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	mustApply(t, c, blocklist("list", "10.0.0.1"))
	bad := blocklist("list", "10.0.0.300", "10.0.0.7")
	bad.Tables[0].Chains[0].Rules = append(bad.Tables[0].Chains[0].Rules, &weftv1.Rule{Text: "ip saddr 10.0.0.1 tcp dprot 80 drop"})
	r := rejection(t, errorOf(c.Apply(ctx, bad)), weftv1.Violation_REASON_INVALID)
	if len(r.Violations) != 2 {
		t.Fatalf("violations %v: want both", r.Violations)
	}
	detail := fmt.Sprintf("%+v", r)
	for _, want := range []string{"rule ip demo input #2", "^", "element ip demo blocked { 10.0.0.300 }"} {
		if !strings.Contains(detail, want) {
			t.Fatalf("detail lacks %q:\n%s", want, detail)
		}
	}
	wantElements(t, k, "10.0.0.1")
	list, err := c.List(ctx)
	if err != nil || len(list.GetFragments()) != 1 || len(list.GetFragments()[0].GetViolations()) != 2 {
		t.Fatalf("list %v, error %v: want the violations in the status", list, err)
	}
}

// TestRestartAdoptsAndCommitsNothing has a publisher come back with what the kernel
// has already.
//
// Behaviour: 132.
func TestRestartAdoptsAndCommitsNothing(t *testing.T) {
	k := &aggregatortest.Kernel{}
	dir := t.TempDir()
	ctx := aggregatortest.Context(t)
	cfg := aggregator.Config{Kernel: k, StateDir: dir}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	before, err := d.Dial(t, "tester").Apply(ctx, blocklist("list", "10.0.0.1", "10.0.0.2"))
	must(t, err)
	must(t, d.Stop())
	d = aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	c := d.Dial(t, "tester")
	list, err := c.List(ctx)
	if err != nil || len(list.GetFragments()) != 1 {
		t.Fatalf("list %v, error %v", list, err)
	}
	if st := list.GetFragments()[0]; st.GetState() != weftv1.FragmentStatus_STATE_ADOPTED || st.GetElements() != 2 || list.GetRevision() < before {
		t.Fatalf("adopted status %v, revision %d after %d", st, list.GetRevision(), before)
	}
	mustApply(t, c, blocklist("list", "10.0.0.1", "10.0.0.2"))
	same(t, "commits, with none of the restart", len(k.Commits()), 1)
	rev, err := c.Apply(ctx, blocklist("list", "10.0.0.2"))
	if err != nil || rev <= before {
		t.Fatalf("revision %d after %d, error %v", rev, before, err)
	}
	wantElements(t, k, "10.0.0.2")
}

func TestDriftIsRepairedAndTold(t *testing.T) {
	k := &aggregatortest.Kernel{}
	var later atomic.Int64
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{
		Kernel: k, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}})
	c := d.Dial(t, "tester")
	mustApply(t, c, blocklist("list", "10.0.0.1"))
	events := watch(t, d)
	must(t, d.Aggregator.Drift())
	k.Flush()
	aggregatortest.Eventually(t, "the element is back", func() bool { return len(k.Elements(demo, "blocked")) == 1 })
	events.until(t, "drift", func(e *weftv1.WatchResponse) bool { return e.GetDrift().GetRepaired().GetElementsAdded() == 1 })
	if got := k.Rules(demo, "input"); len(got) != 1 {
		t.Fatalf("rules %v", got)
	}
	if err := d.Aggregator.Drift(); err == nil || !strings.Contains(err.Error(), "another process changed the tables, which was repaired: ") {
		t.Errorf("drift after the repair: %v", err)
	}
	later.Store(int64(time.Hour))
	must(t, d.Aggregator.Drift())
}

func TestStandby(t *testing.T) {
	k := &aggregatortest.Kernel{}
	k.SetOwned(&kernel.OwnedError{Table: demo, PID: 1, Process: "weft"})
	a, err := aggregator.New(aggregator.Config{Kernel: k})
	must(t, err)
	var owned *kernel.OwnedError
	if err := a.Run(aggregatortest.Context(t)); !errors.As(err, &owned) {
		t.Fatalf("run: %v: want who owns the table", err)
	}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Standby: true, Retry: 1e6}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	aggregatortest.Eventually(t, "it stands by", func() bool {
		_, err := c.Apply(ctx, blocklist("list", "10.0.0.1"))
		return errors.Is(err, client.ErrUnavailable) && errors.Is(d.Aggregator.Converged(), aggregator.ErrStandby)
	})
	_, err = d.Aggregator.Cleanup(ctx)
	if !errors.Is(err, aggregator.ErrStandby) {
		t.Errorf("cleanup of one that stands by: %v", err)
	}
	k.SetOwned(nil)
	<-d.Aggregator.Ready()
	aggregatortest.Eventually(t, "it is settled", func() bool { return d.Aggregator.Converged() == nil })
	mustApply(t, c, blocklist("list", "10.0.0.1"))
}

func TestLoadIsCoalesced(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Rate: 20, Burst: 1}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	s := session(t, c, func(string) *weftv1.Fragment { return blocklist("list") })
	must(t, errorOf(s.Put(ctx, blocklist("list"))))
	var pending []*client.Pending
	for i := range 200 {
		pending = append(pending, s.StartPatch(patch("list", []string{fmt.Sprintf("10.0.0.%d", i)}, nil)))
	}
	for _, p := range pending {
		must(t, errorOf(p.Wait(ctx)))
	}
	same(t, "elements", len(k.Elements(demo, "blocked")), 200)
	if n := len(k.Commits()); n > 10 {
		t.Fatalf("%d commits for 200 patches", n)
	}
}

// TestCommitPhases has an update wait for a token, and sees that in the event.
func TestCommitPhases(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Rate: rate.Limit(20), Burst: 1}})
	events := watch(t, d)
	applyAs(t, d, "a", blocklist("list", "10.0.0.1"))
	applyAs(t, d, "a", blocklist("list", "10.0.0.2"))
	commits := 0
	events.until(t, "both commits are told", func(e *weftv1.WatchResponse) bool {
		c := e.GetCommit()
		if c == nil {
			return false
		}
		if c.GetBuild().AsDuration() <= 0 || c.GetKernel().AsDuration() <= 0 {
			t.Errorf("build %v and kernel %v: want both", c.GetBuild(), c.GetKernel())
		}
		// The token of the second comes 50 ms after that of the first.
		if commits++; commits == 2 && c.GetWait().AsDuration() <= 0 {
			t.Errorf("the update waited for %v: want the time to the next token", c.GetWait().AsDuration())
		}
		return commits == 2
	})
}

func TestCleanup(t *testing.T) {
	k, dir := &aggregatortest.Kernel{}, t.TempDir()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Rate: 0.01, Burst: 1}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	mustApply(t, c, blocklist("list", "10.0.0.1"))
	waiting := make(chan error, 1)
	go func() { waiting <- errorOf(c.Apply(ctx, blocklist("waits", "10.0.0.2"))) }()
	aggregatortest.Eventually(t, "an update waits for its turn", func() bool { return d.Aggregator.Pending() == 1 })
	k.FailNext(syscall.EPERM, false)
	if _, err := c.Cleanup(ctx); err == nil {
		t.Fatal("the kernel's refusal is not an error")
	}
	wantElements(t, k, "10.0.0.1")
	tables, err := c.Cleanup(ctx)
	if err != nil || len(tables) != 1 || tables[0] != "ip demo" {
		t.Fatalf("removed %v, error %v", tables, err)
	}
	if err := <-waiting; !errors.Is(err, client.ErrUnavailable) {
		t.Fatalf("update that waited: %v", err)
	}
	if err := d.Stop(); !errors.Is(err, aggregator.ErrCleanedUp) {
		t.Fatalf("run returned %v", err)
	}
	same(t, "the kernel", k.String(), "")
	if c, _ := state(t, dir); c.Trusted {
		t.Fatal("the record is still there")
	}
	// The next start knows of nothing.
	d = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	if list, _ := d.Aggregator.List(); len(list) != 0 {
		t.Fatalf("fragments %v", list)
	}
}

func TestConvergedWithNothingBefore(t *testing.T) {
	k := &aggregatortest.Kernel{}
	a, err := aggregator.New(aggregator.Config{Kernel: k})
	must(t, err)
	if err := a.Converged(); !errors.Is(err, aggregator.ErrStarting) {
		t.Errorf("before Run the answer is %v: want ErrStarting", err)
	}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	must(t, d.Aggregator.Converged())
	must(t, d.Stop())
	if err := d.Aggregator.Converged(); !errors.Is(err, aggregator.ErrStopped) {
		t.Errorf("after the end the answer is %v: want ErrStopped", err)
	}
}

// TestConvergedAfterRestart waits for publishers of sticky fragments, by name, and
// not for those of sessions.
func TestConvergedAfterRestart(t *testing.T) {
	k := &aggregatortest.Kernel{}
	cfg := aggregator.Config{Kernel: k, StateDir: t.TempDir()}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	ctx := aggregatortest.Context(t)
	applyAs(t, d, "b", blocklist("one", "10.0.0.1"))
	applyAs(t, d, "b", blocklist("two", "10.0.0.2"))
	applyAs(t, d, "a", blocklist("list", "10.0.0.3"))
	durable := blocklist("kept", "10.0.0.4")
	durable.Lifetime = weftv1.Lifetime_LIFETIME_DURABLE
	applyAs(t, d, "d", durable)
	gone := blocklist("gone", "10.0.0.5")
	gone.Lifetime = weftv1.Lifetime_LIFETIME_SESSION
	s := session(t, d.Dial(t, "s"), func(string) *weftv1.Fragment { return gone })
	must(t, errorOf(s.Put(ctx, gone)))
	must(t, d.Stop())

	again := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	if err := again.Aggregator.Converged(); err == nil || !strings.Contains(err.Error(), "(fragments: 3, grace left: ") || !strings.HasSuffix(err.Error(), ": a, b") {
		t.Fatalf("after a restart the answer is %v: want that 3 fragments of a and b are missing", err)
	}
	applyAs(t, again, "a", blocklist("list", "10.0.0.3"))
	applyAs(t, again, "b", blocklist("one", "10.0.0.1"))
	if err := again.Aggregator.Converged(); err == nil || !strings.Contains(err.Error(), "(fragments: 1, ") || !strings.HasSuffix(err.Error(), ": b") {
		t.Errorf("the answer is %v: want that b is missing", err)
	}
	must(t, errorOf(again.Aggregator.Delete(ctx, "b", "two")))
	must(t, errors.Join(again.Aggregator.Converged(), again.Aggregator.Missing()))
}

// TestPublisherGone misses a publisher whose session has ended, while its fragment is left.
func TestPublisherGone(t *testing.T) {
	var later atomic.Int64
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{
		Kernel: &aggregatortest.Kernel{}, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}})
	list := blocklist("list", "10.0.0.3")
	s := session(t, d.Dial(t, "a"), func(string) *weftv1.Fragment { return list })
	must(t, errorOf(s.Put(aggregatortest.Context(t), list)))
	later.Add(int64(time.Minute))
	must(t, d.Aggregator.Missing())
	must(t, s.Close())
	var gone error
	aggregatortest.Eventually(t, "the publisher is missed", func() bool {
		later.Add(int64(time.Minute))
		gone = d.Aggregator.Missing()
		return gone != nil
	})
	if text := gone.Error(); !regexp.MustCompile(`^publishers have gone, for [1-9]\d*m.*: a$`).MatchString(text) {
		t.Errorf("the answer is %s: want that a is missing, for a minute or more", text)
	}
	again := session(t, d.Dial(t, "a"), func(string) *weftv1.Fragment { return list })
	must(t, errorOf(again.Put(aggregatortest.Context(t), list)))
	must(t, d.Aggregator.Missing())
	// It leaves nothing behind: nothing is missing.
	must(t, errorOf(again.Withdraw(aggregatortest.Context(t), "list")))
	later.Add(int64(time.Minute))
	must(t, again.Close())
	aggregatortest.Eventually(t, "the session has ended", func() bool {
		list, err := d.Aggregator.ListPublishers()
		return err == nil && len(list.GetPublishers()) == 0
	})
	later.Add(int64(time.Hour))
	must(t, d.Aggregator.Missing())
}

func TestConvergedOnceGraceIsOver(t *testing.T) {
	k := &aggregatortest.Kernel{}
	var later atomic.Int64
	cfg := aggregator.Config{
		Kernel: k, StateDir: t.TempDir(), ReadyGrace: time.Hour,
		Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	applyAs(t, d, "a", blocklist("list", "10.0.0.3"))
	must(t, d.Stop())
	again := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	if err := again.Aggregator.Converged(); err == nil {
		t.Error("settled within the grace")
	}
	later.Store(int64(time.Hour + time.Second))
	must(t, again.Aggregator.Converged())
	if err, want := again.Aggregator.Missing(), "publishers of before the restart have not come back yet (fragments: 1): a"; err == nil || err.Error() != want {
		t.Errorf("missing: %v, want %s", err, want)
	}
	if fragments, _ := again.Aggregator.List(); len(fragments) != 1 || fragments[0].GetState() != weftv1.FragmentStatus_STATE_ADOPTED {
		t.Errorf("fragments are %v: want that nothing was withdrawn", fragments)
	}
}

// TestRefused names the fragment whose last update was rejected, until it is corrected or withdrawn, and one that is
// stored and that the configuration does not allow.
func TestRefused(t *testing.T) {
	_, d := inMemory(t)
	ctx, c := aggregatortest.Context(t), d.Dial(t, "a")
	wrong := &weftv1.Fragment{Name: "two", Nft: "table inet x { chain c { ip sadr 192.0.2.1 drop; }; }"}
	reject := func() {
		t.Helper()
		if _, err := c.Apply(ctx, wrong); err == nil {
			t.Fatal("a wrong update is committed")
		}
	}
	reject()
	must(t, d.Aggregator.Refused())
	applyAs(t, d, "a", blocklist("two", "10.0.0.1"))
	must(t, d.Aggregator.Refused())
	reject()
	if err := d.Aggregator.Refused(); err == nil || !strings.HasPrefix(err.Error(), `fragment a/two: an update was rejected: unknown field "sadr"`) || !strings.HasSuffix(err.Error(), "(fragments: 1)") {
		t.Errorf("the answer is %v", err)
	}
	applyAs(t, d, "a", blocklist("two", "10.0.0.1"))
	must(t, d.Aggregator.Refused())
	reject()
	must(t, errorOf(d.Aggregator.Delete(ctx, "a", "two")))
	must(t, d.Aggregator.Refused())
}
