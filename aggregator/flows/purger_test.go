package flows

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// clients is a kernel with one affinity map.
type clients struct {
	mu sync.Mutex
	// keys are those of the entries, and lost those that time out before they are deleted.
	keys, lost map[string]bool
	// value is that of all entries.
	value string
	// read and commit are the errors of the next calls.
	read, commit []error
	// reads counts DumpSet, batches are the sizes of the commits that took effect.
	reads   int
	batches []int
}

func next(errs *[]error) (err error) {
	if len(*errs) > 0 {
		err, *errs = (*errs)[0], (*errs)[1:]
	}
	return err
}

func (c *clients) DumpSet(nft.TableID, *set.Set) ([]set.Element, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	var all []set.Element
	for key := range c.keys {
		all = append(all, set.Element{Key: key, Data: c.value})
	}
	return all, next(&c.read)
}

func (c *clients) Commit(ops []kernel.Op) (kernel.Stats, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := next(&c.commit); err != nil {
		return kernel.Stats{}, err
	}
	entries := ops[0].(kernel.DeleteElements).Elements
	for _, e := range entries {
		if c.lost[e.Key] {
			return kernel.Stats{}, &kernel.BatchError{Op: ops[0], Errno: syscall.ENOENT}
		}
	}
	for _, e := range entries {
		delete(c.keys, e.Key)
	}
	c.batches = append(c.batches, len(entries))
	return kernel.Stats{}, nil
}

// purgeRig is a Purger with the map "clients" of table ip t, whose entries lead to 10.0.0.1:80.
// Without rules none of them may be there.
type purgeRig struct {
	*Purger
	kernel *clients
	state  *merge.State
	purge  desired.Purge
	log    bytes.Buffer
	// removed counts calls of PurgerConfig.Removed.
	removed int
}

func newPurgeRig(t *testing.T, entries int, rules ...string) *purgeRig {
	t.Helper()
	r := &purgeRig{state: merge.New(), kernel: &clients{keys: map[string]bool{}, lost: map[string]bool{}, value: "\x0a\x00\x00\x01\x00\x50\x00\x00"}}
	for i := range entries {
		r.kernel.keys[string(binary.BigEndian.AppendUint32(nil, uint32(i)))] = true //nolint:gosec // a count
	}
	r.publish(t, rules...)
	decl, ok := r.state.Scope().Table(nft.TableID{Family: nft.FamilyIP, Name: "t"}).Set("clients")
	if !ok {
		t.Fatal("there is no map")
	}
	r.purge = desired.Purge{Table: nft.TableID{Family: nft.FamilyIP, Name: "t"}, Decl: decl}
	r.Purger = NewPurger(PurgerConfig{
		Kernel: r.kernel, State: r.state, Delay: time.Minute, Removed: func() { r.removed++ }, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		Metrics: &Metrics{Purged: prometheus.NewCounter(prometheus.CounterOpts{Name: "purged"}), PurgeErrors: prometheus.NewCounter(prometheus.CounterOpts{Name: "errors"})},
	})
	return r
}

// publish commits a fragment with the map and rules.
func (r *purgeRig) publish(t *testing.T, rules ...string) {
	t.Helper()
	chain := &weftv1.Chain{Name: "c"}
	for _, text := range rules {
		chain.Rules = append(chain.Rules, &weftv1.Rule{Text: text})
	}
	b := admission.NewSnapshot(admission.Config{}, desired.Key{Publisher: "p", Name: "f"}, r.state.Scope())
	b.AddFragment(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{Family: "ip", Name: "t", Chains: []*weftv1.Chain{chain}, Maps: []*weftv1.Set{{
		Name: "clients", Typeof: "ip saddr : ip daddr . th dport", Flags: []string{"dynamic", "timeout"}, Size: 65536, Role: weftv1.MapRole_MAP_ROLE_AFFINITY,
	}}}}})
	u, err := b.Finish()
	if err == nil {
		err = r.state.Apply(u)
	}
	must(t, err)
	planner.Accept(r.state)
}

// work does what the owner of the kernel does, until there is nothing to do for d.
func (r *purgeRig) work(d time.Duration) {
	idle := time.NewTimer(d)
	defer idle.Stop()
	for {
		select {
		case <-r.Due():
			r.Step()
		case f := <-r.Events():
			f()
		case <-idle.C:
			return
		}
	}
}

// runPurger calls f with a new purgeRig while Run runs. The time in f is simulated.
func runPurger(t *testing.T, entries int, rules []string, f func(t *testing.T, r *purgeRig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newPurgeRig(t, entries, rules...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		f(t, r)
		// Timers of an hour at most.
		<-time.After(time.Hour)
		cancel()
		<-done
	})
}

// TestPurge removes entries that no rule makes, in batches, and reads the map once more.
func TestPurge(t *testing.T) {
	const entries = 3*purgeChunk + 5
	runPurger(t, entries, nil, func(t *testing.T, r *purgeRig) {
		if r.Busy() || r.Due() != nil {
			t.Error("a new Purger is busy")
		}
		r.Add([]desired.Purge{r.purge, r.purge}, true)
		if !r.Busy() {
			t.Error("the Purger is not busy")
		}
		r.work(time.Second)
		if want := []int{purgeChunk, purgeChunk, purgeChunk, 5}; !slices.Equal(r.kernel.batches, want) || r.kernel.reads != 1 || r.removed != 1 {
			t.Errorf("batches %v after %d reads, %d comparisons of flows, want %v after one", r.kernel.batches, r.kernel.reads, r.removed, want)
		}
		// A packet that was under way made an entry meanwhile.
		r.kernel.keys["late"] = true
		r.work(2 * time.Minute)
		if len(r.kernel.keys) != 0 || r.kernel.reads != 2 || r.removed != 2 {
			t.Errorf("%d entries are left after %d reads, and %d comparisons of flows", len(r.kernel.keys), r.kernel.reads, r.removed)
		}
		r.work(time.Hour)
		if r.kernel.reads != 2 || r.Busy() {
			t.Errorf("%d reads, busy: %t", r.kernel.reads, r.Busy())
		}
		r.counted(t, entries+1, 0)
		if want := fmt.Sprintf(`msg="removed affinity entries" table="ip t" map=clients entries=%d`, entries); !strings.Contains(r.log.String(), want) {
			t.Errorf("the log does not have %s:\n%s", want, r.log.String())
		}
	})
}

// counted checks the metrics.
func (r *purgeRig) counted(t *testing.T, removed, errors float64) {
	t.Helper()
	if got := testutil.ToFloat64(r.cfg.Metrics.Purged); got != removed {
		t.Errorf("%v removed entries are counted, want %v", got, removed)
	}
	if got := testutil.ToFloat64(r.cfg.Metrics.PurgeErrors); got != errors {
		t.Errorf("%v errors are counted, want %v. The log has\n%s", got, errors, r.log.String())
	}
}

// TestPurgeKeepsWhatRulesMake has the rule of the entries come back, before the map is read and
// while its entries are removed.
func TestPurgeKeepsWhatRulesMake(t *testing.T) {
	const rule = "tcp dport 80 update @clients { ip saddr timeout 1h : 10.0.0.1 . 80 }"
	runPurger(t, 10, []string{rule}, func(t *testing.T, r *purgeRig) {
		r.Add([]desired.Purge{r.purge}, true)
		r.work(5 * time.Minute)
		if len(r.kernel.keys) != 10 || r.removed != 0 {
			t.Errorf("%d entries are left", len(r.kernel.keys))
		}
	})
	runPurger(t, 2*purgeChunk, nil, func(t *testing.T, r *purgeRig) {
		r.Add([]desired.Purge{r.purge}, false)
		for len(r.kernel.batches) == 0 {
			select {
			case <-r.Due():
				r.Step()
			case f := <-r.Events():
				f()
			}
		}
		r.publish(t, rule)
		r.work(5 * time.Minute)
		if len(r.kernel.keys) != purgeChunk || r.removed != 0 {
			t.Errorf("%d entries are left, %d comparisons of flows", len(r.kernel.keys), r.removed)
		}
	})
}

// TestPurgeErrors has reads and commits fail: they are tried again.
func TestPurgeErrors(t *testing.T) {
	unknown := errors.New("no answer")
	refused := &kernel.BatchError{Errno: syscall.EPERM}
	for _, tt := range []struct {
		name         string
		read, commit []error
		errors       float64
		log          string
	}{
		{"read", []error{unknown, unknown}, nil, 2, `error="read map: no answer" retry=1m0s`},
		{"commit", nil, []error{unknown}, 1, `error="remove entries: no answer" retry=1m0s`},
		{"refused", nil, []error{refused}, 1, `error="remove entries: `},
	} {
		runPurger(t, 10, nil, func(t *testing.T, r *purgeRig) {
			r.kernel.read, r.kernel.commit = tt.read, tt.commit
			r.Add([]desired.Purge{r.purge}, false)
			r.work(time.Second)
			if len(r.kernel.keys) != 10 {
				t.Errorf("%s: entries are removed before the retry", tt.name)
			}
			r.work(10 * time.Minute)
			if len(r.kernel.keys) != 0 {
				t.Errorf("%s: %d entries are left", tt.name, len(r.kernel.keys))
			}
			r.counted(t, 10, tt.errors)
			if !strings.Contains(r.log.String(), tt.log) {
				t.Errorf("%s: the log does not have %s:\n%s", tt.name, tt.log, r.log.String())
			}
		})
	}
}

// TestPurgeOfAMapThatIsGone reads a map that another process has deleted: that is not an error.
func TestPurgeOfAMapThatIsGone(t *testing.T) {
	runPurger(t, 1, nil, func(t *testing.T, r *purgeRig) {
		r.kernel.read = []error{syscall.ENOENT}
		r.Add([]desired.Purge{r.purge}, false)
		r.work(time.Hour)
		r.counted(t, 0, 0)
		if r.kernel.reads != 1 {
			t.Errorf("%d reads", r.kernel.reads)
		}
	})
}

// TestPurgeOfEntriesThatTimeOut has entries time out between the reading and the batch, which
// the kernel refuses then: all others are removed.
func TestPurgeOfEntriesThatTimeOut(t *testing.T) {
	runPurger(t, 100, nil, func(t *testing.T, r *purgeRig) {
		for _, i := range []uint32{7, 50, 99} {
			r.kernel.lost[string(binary.BigEndian.AppendUint32(nil, i))] = true
		}
		r.Add([]desired.Purge{r.purge}, false)
		r.work(time.Second)
		r.counted(t, 97, 0)
		if len(r.kernel.keys) != len(r.kernel.lost) {
			t.Errorf("%d entries are left", len(r.kernel.keys))
		}
	})
	// Another error, in a part of the batch, ends the attempt.
	runPurger(t, 4, nil, func(t *testing.T, r *purgeRig) {
		r.kernel.commit = []error{&kernel.BatchError{Errno: syscall.ENOENT}, errors.New("no answer")}
		r.Add([]desired.Purge{r.purge}, false)
		r.work(time.Second)
		r.counted(t, 0, 1)
		r.work(2 * time.Minute)
		if len(r.kernel.keys) != 0 {
			t.Errorf("%d entries are left after the retry", len(r.kernel.keys))
		}
	})
}

// TestPurgeAtTheStop does what is left at a stop, within its time.
func TestPurgeAtTheStop(t *testing.T) {
	runPurger(t, 3*purgeChunk, nil, func(t *testing.T, r *purgeRig) {
		r.Add([]desired.Purge{r.purge}, false)
		r.Drain(time.Second)
		if len(r.kernel.keys) != 0 || r.Busy() {
			t.Errorf("%d entries are left", len(r.kernel.keys))
		}
	})
	// If the map is not read, the stop does not wait longer than it may.
	synctest.Test(t, func(t *testing.T) {
		r := newPurgeRig(t, 1)
		r.Add([]desired.Purge{r.purge}, false)
		start := time.Now()
		r.Drain(time.Second)
		if d := time.Since(start); d != time.Second || len(r.kernel.keys) != 1 {
			t.Errorf("the stop took %v", d)
		}
	})
}
