package aggregator_test

import (
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

func TestConvergedWithNothingBefore(t *testing.T) {
	k := &aggregatortest.Kernel{}
	a, err := aggregator.New(aggregator.Config{Kernel: k})
	must(t, err)
	if err := a.Converged(); !errors.Is(err, aggregator.ErrStarting) {
		t.Errorf("before Run the answer is %v: want ErrStarting", err)
	}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	if err := d.Aggregator.Converged(); err != nil {
		t.Errorf("with nothing to wait for the answer is %v", err)
	}
	must(t, d.Stop())
	if err := d.Aggregator.Converged(); !errors.Is(err, aggregator.ErrStopped) {
		t.Errorf("after the end the answer is %v: want ErrStopped", err)
	}
}

func TestConvergedStandingBy(t *testing.T) {
	k := &aggregatortest.Kernel{}
	k.SetOwned(&kernel.OwnedError{Table: demo, PID: 1, Process: "weft"})
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Standby: true, Retry: time.Millisecond}})
	aggregatortest.Eventually(t, "it stands by", func() bool { return errors.Is(d.Aggregator.Converged(), aggregator.ErrStandby) })
	k.SetOwned(nil)
	aggregatortest.Eventually(t, "it is settled", func() bool { return d.Aggregator.Converged() == nil })
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
	if _, err := s.Put(ctx, gone); err != nil {
		t.Fatal(err)
	}
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
	if _, err := again.Aggregator.Delete(ctx, "b", "two"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(again.Aggregator.Converged(), again.Aggregator.Missing()); err != nil {
		t.Errorf("all are back, and the answer is %v", err)
	}
}

// TestPublisherGone misses a publisher whose session has ended, while its fragment is left.
func TestPublisherGone(t *testing.T) {
	var later atomic.Int64
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{
		Kernel: &aggregatortest.Kernel{}, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}})
	list := blocklist("list", "10.0.0.3")
	s := session(t, d.Dial(t, "a"), func(string) *weftv1.Fragment { return list })
	if _, err := s.Put(aggregatortest.Context(t), list); err != nil {
		t.Fatal(err)
	}
	later.Add(int64(time.Minute))
	if err := d.Aggregator.Missing(); err != nil {
		t.Errorf("a connected publisher is missed: %v", err)
	}
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
	if _, err := again.Put(aggregatortest.Context(t), list); err != nil {
		t.Fatal(err)
	}
	if err := d.Aggregator.Missing(); err != nil {
		t.Errorf("it is back, and is missed: %v", err)
	}
	// It leaves nothing behind: nothing is missing.
	if _, err := again.Withdraw(aggregatortest.Context(t), "list"); err != nil {
		t.Fatal(err)
	}
	later.Add(int64(time.Minute))
	must(t, again.Close())
	aggregatortest.Eventually(t, "the session has ended", func() bool {
		list, err := d.Aggregator.ListPublishers()
		return err == nil && len(list.GetPublishers()) == 0
	})
	later.Add(int64(time.Hour))
	if err := d.Aggregator.Missing(); err != nil {
		t.Errorf("a publisher that withdrew everything is missed: %v", err)
	}
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
	if err := again.Aggregator.Converged(); err != nil {
		t.Errorf("the grace is over, and the answer is %v", err)
	}
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
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	ctx, c := aggregatortest.Context(t), d.Dial(t, "a")
	wrong := &weftv1.Fragment{Name: "two", Nft: "table inet x { chain c { ip sadr 192.0.2.1 drop; }; }"}
	reject := func() {
		t.Helper()
		if _, err := c.Apply(ctx, wrong); err == nil {
			t.Fatal("a wrong update is committed")
		}
	}
	reject()
	if err := d.Aggregator.Refused(); err != nil {
		t.Errorf("a fragment that was never there is %v", err)
	}
	applyAs(t, d, "a", blocklist("two", "10.0.0.1"))
	if err := d.Aggregator.Refused(); err != nil {
		t.Errorf("without a rejection the answer is %v", err)
	}
	reject()
	if err := d.Aggregator.Refused(); err == nil || !strings.HasPrefix(err.Error(), `fragment a/two: an update was rejected: unknown field "sadr"`) || !strings.HasSuffix(err.Error(), "(fragments: 1)") {
		t.Errorf("the answer is %v", err)
	}
	applyAs(t, d, "a", blocklist("two", "10.0.0.1"))
	if err := d.Aggregator.Refused(); err != nil {
		t.Errorf("the update is corrected, and the answer is %v", err)
	}
	reject()
	if _, err := d.Aggregator.Delete(ctx, "a", "two"); err != nil {
		t.Fatal(err)
	}
	if err := d.Aggregator.Refused(); err != nil {
		t.Errorf("the fragment is withdrawn, and the answer is %v", err)
	}
}
