package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// faulty is a kernel in memory whose calls fail as a test says.
type faulty struct {
	aggregatortest.Kernel

	mu sync.Mutex
	// dumps and watches are errors of the next calls.
	dumps, watches []error
	changes        chan kernel.Event
	watched        int
	// blind has Watch fail.
	blind bool
}

func next(errs *[]error) (err error) {
	if len(*errs) > 0 {
		err, *errs = (*errs)[0], (*errs)[1:]
	}
	return err
}

func (k *faulty) Dump() ([]kernel.Table, error) {
	k.mu.Lock()
	err := next(&k.dumps)
	k.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return k.Kernel.Dump()
}

func (k *faulty) Watch(context.Context) (<-chan kernel.Event, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := next(&k.watches); err != nil {
		return nil, err
	}
	if k.blind {
		return nil, syscall.EMFILE
	}
	k.watched++
	k.changes = make(chan kernel.Event, 16)
	return k.changes, nil
}

// tell reports a change to the watcher.
func (k *faulty) tell(c kernel.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes <- c
}

// failWatch ends the watch as a failed socket does, and has the next ones fail
// too.
func (k *faulty) failWatch(err error, more ...error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watches = more
	k.changes <- kernel.Event{Reason: kernel.Failed, Err: err}
	close(k.changes)
}

func (k *faulty) setBlind(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.blind = on
}

// tried reports whether all errors of failWatch were met.
func (k *faulty) tried() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.watches) == 0
}

func (k *faulty) watching() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.watched
}

func startFaulty(t *testing.T) (*faulty, *aggregatortest.Daemon) {
	t.Helper()
	k := &faulty{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Retry: 20 * time.Millisecond}})
	mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.1"))
	return k, d
}

// unknown are the errors after which it is unknown whether a batch took effect.
var unknown = []error{
	fmt.Errorf("commit batch: %w: no acknowledgement", kernel.ErrUnknownOutcome),
	fmt.Errorf("commit batch: %w: %w", kernel.ErrUnknownOutcome, syscall.ENOBUFS),
	fmt.Errorf("commit batch: %w: %w", kernel.ErrUnknownOutcome, syscall.EINTR),
	fmt.Errorf("commit batch: %w: %w", kernel.ErrUnknownOutcome, syscall.ETIMEDOUT),
	fmt.Errorf("commit batch: %w: %w", kernel.ErrUnknownOutcome, syscall.ENOMEM),
	fmt.Errorf("commit batch: %w", kernel.ErrBusy),
	fmt.Errorf("commit batch: table ip demo: %w", kernel.ErrDrift),
}

// TestLostAnswers has answers of the kernel get lost, once and twice in a row, for
// batches that took effect and for ones that did not; the updates are committed,
// and acknowledged once.
func TestLostAnswers(t *testing.T) {
	for _, err := range unknown {
		for _, applied := range []bool{true, false} {
			if applied && !errors.Is(err, kernel.ErrUnknownOutcome) {
				continue
			}
			t.Run(fmt.Sprintf("%v applied=%v", err, applied), func(t *testing.T) {
				k, d := startFaulty(t)
				c, ctx := d.Dial(t, "tester"), aggregatortest.Context(t)
				handles := k.Handles(demo, "input")
				for n := 1; n <= 2; n++ {
					for range n {
						k.FailNext(err, applied)
					}
					_, aerr := c.Apply(ctx, blocklist("list", fmt.Sprintf("10.0.1.%d", n)))
					must(t, aerr)
					wantElements(t, &k.Kernel, fmt.Sprintf("10.0.1.%d", n))
				}
				if got := k.Handles(demo, "input"); !slices.Equal(got, handles) {
					t.Errorf("handles %v became %v", handles, got)
				}
			})
		}
	}
}

// TestKernelThatNeverAnswers is refused, update by update, and not visible.
func TestKernelThatNeverAnswers(t *testing.T) {
	k, d := startFaulty(t)
	c, ctx := d.Dial(t, "tester"), aggregatortest.Context(t)
	for range 3 {
		k.FailNext(kernel.ErrUnknownOutcome, false)
	}
	rejection(t, errorOf(c.Apply(ctx, blocklist("list", "10.0.0.2"))), weftv1.Violation_REASON_KERNEL)
	wantElements(t, &k.Kernel, "10.0.0.1")
	mustApply(t, c, blocklist("list", "10.0.0.3"))
	wantElements(t, &k.Kernel, "10.0.0.3")
}

// TestRepairThatFails has the repair itself meet faults, of the dump and of the
// commit: it is tried until it succeeds, once told and counted, and updates wait
// for it.
func TestRepairThatFails(t *testing.T) {
	for name, fail := range map[string]func(*faulty){
		"out of files": func(k *faulty) {
			k.dumps = slices.Repeat([]error{fmt.Errorf("dump ruleset: %w", syscall.EMFILE)}, 7)
		},
		"out of memory":     func(k *faulty) { k.dumps = []error{syscall.ENOMEM, syscall.ENOBUFS, syscall.EINTR, kernel.ErrBusy} },
		"malformed answer":  func(k *faulty) { k.dumps = []error{kernel.ErrMalformed} },
		"unknown outcome":   func(k *faulty) { k.FailNext(kernel.ErrUnknownOutcome, false) },
		"lost answer":       func(k *faulty) { k.FailNext(kernel.ErrUnknownOutcome, true) },
		"other writers":     func(k *faulty) { k.FailNext(kernel.ErrBusy, false); k.FailNext(kernel.ErrDrift, false) },
		"changed meanwhile": func(k *faulty) { k.FailNext(&kernel.BatchError{Index: 0, Element: -1, Errno: syscall.ENOENT}, false) },
		"memory of a table": func(k *faulty) { k.FailNext(&kernel.BatchError{Index: -1, Element: -1, Errno: syscall.ENOMEM}, false) },
	} {
		t.Run(name, func(t *testing.T) {
			k, d := startFaulty(t)
			events := watch(t, d)
			k.mu.Lock()
			fail(k)
			k.mu.Unlock()
			k.Flush()
			k.tell(kernel.Event{Table: demo, Reason: kernel.Deleted, PID: 1, Process: "nft"})
			_, err := d.Dial(t, "tester").Apply(aggregatortest.Context(t), blocklist("list", "10.0.0.2"))
			if err == nil {
				wantElements(t, &k.Kernel, "10.0.0.2")
			} else {
				// Only while its table could not be repaired.
				rejection(t, err, weftv1.Violation_REASON_KERNEL)
				aggregatortest.Eventually(t, "the table is back", func() bool { return len(k.Elements(demo, "blocked")) == 1 })
			}
			if name == "lost answer" {
				return // it is repaired without knowing it
			}
			events.until(t, "the repair is told", func(e *weftv1.WatchResponse) bool { return e.GetDrift().GetRepaired().GetTables() == 1 })
		})
	}
}

// TestLostWatch has the watch of the kernel overrun and fail; what happened
// meanwhile is repaired, and what happens later seen.
func TestLostWatch(t *testing.T) {
	k, d := startFaulty(t)
	back := func() bool { return len(k.Elements(demo, "blocked")) == 1 }
	k.Flush()
	k.tell(kernel.Event{Reason: kernel.Overrun})
	aggregatortest.Eventually(t, "it is repaired after an overrun", back)

	k.failWatch(syscall.ENOMEM, syscall.EMFILE, syscall.EMFILE)
	aggregatortest.Eventually(t, "it watches again", func() bool { return k.watching() == 2 })
	k.Flush()
	k.tell(kernel.Event{Table: demo, Reason: kernel.Deleted})
	aggregatortest.Eventually(t, "it is repaired after a report of the new watch", back)

	// This one is not reported: it happens when the lost watch has been answered,
	// and before the next one.
	k.setBlind(true)
	k.failWatch(syscall.ENOMEM, syscall.EMFILE)
	aggregatortest.Eventually(t, "it tried to watch again", k.tried)
	mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.1"))
	events := watch(t, d)
	k.Flush()
	k.setBlind(false)
	aggregatortest.Eventually(t, "it is repaired because notifications were lost", back)
	aggregatortest.Eventually(t, "it watches again", func() bool { return k.watching() == 3 })
	events.until(t, "that is told", func(e *weftv1.WatchResponse) bool { return e.GetDrift().GetRepaired() != nil })
}

// TestSilentDamage has unreported damage show when an update meets it: it
// is repaired, and no update is blamed.
func TestSilentDamage(t *testing.T) {
	k, d := startFaulty(t)
	events := watch(t, d)
	k.Flush()
	mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.2"))
	wantElements(t, &k.Kernel, "10.0.0.2")
	events.until(t, "the repair is told", func(e *weftv1.WatchResponse) bool { return e.GetDrift().GetRepaired().GetTables() == 1 })
}

// poisonous refuses rules with the comment poison, naming them or not.
func poisonous(k *aggregatortest.Kernel, errno syscall.Errno, named bool) {
	k.RefuseBatch = func(ops []kernel.Op) error {
		for i, op := range ops {
			if r, ok := op.(kernel.AddRule); ok && r.Rule.Comment == "poison" {
				if !named {
					return &kernel.BatchError{Index: -1, Element: -1, Errno: errno}
				}
				return &kernel.BatchError{Index: i, Element: -1, Op: op, Errno: errno}
			}
		}
		return nil
	}
}

// TestBlame sends 16 updates in one batch, some of which the kernel refuses: those
// are rejected, and the others are committed in the same step: in no time, and
// before anything that comes later.
func TestBlame(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ELOOP, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EOPNOTSUPP, syscall.EEXIST, syscall.ENOENT} {
		for _, named := range []bool{true, false} {
			for _, poison := range [][]int{{0}, {7}, {15}, {3, 4, 12}} {
				t.Run(fmt.Sprintf("%v named=%v poison=%v", errno, named, poison), func(t *testing.T) {
					blame(t, errno, named, poison)
				})
			}
		}
	}
}

func blame(t *testing.T, errno syscall.Errno, named bool, poison []int) {
	k := &aggregatortest.Kernel{}
	poisonous(k, errno, named)
	began := time.Now()
	errs := oneBatch(t, k, 16, func(i int) *weftv1.Fragment {
		f := blocklist(fmt.Sprintf("list-%02d", i), fmt.Sprintf("10.0.0.%d", i))
		if slices.Contains(poison, i) {
			f.Tables[0].Chains[0].Rules[0].Comment = "poison"
		}
		return f
	})
	took := time.Since(began)
	want := 1 // of the first
	for i, err := range errs {
		if slices.Contains(poison, i) {
			rejection(t, err, weftv1.Violation_REASON_KERNEL)
			continue
		}
		want++
		must(t, err)
	}
	if got := k.Elements(demo, "blocked"); len(got) != want {
		t.Errorf("%d elements: want %d", len(got), want)
	}
	if n := len(k.Commits()); named && n != 2 {
		t.Errorf("%d commits: want one for the first and one for all others", n)
	}
	if took > 30*time.Second {
		t.Errorf("the others waited %v", took)
	}
}

// oneBatch applies n fragments in one batch, after another one of one element, and returns their errors.
func oneBatch(t *testing.T, k *aggregatortest.Kernel, n int, fragment func(i int) *weftv1.Fragment) []error {
	t.Helper()
	release := hold(k)
	// A token that comes in an hour: a second step would never be taken.
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Rate: 1.0 / 3600, Burst: 2}})
	ctx, c := aggregatortest.Context(t), d.Dial(t, "tester")
	errs := make([]error, n)
	var wg sync.WaitGroup
	// The first one keeps the writer busy until the others wait.
	wg.Go(func() { _, _ = c.Apply(ctx, blocklist("first", "10.9.9.9")) })
	<-release
	for i := range errs {
		wg.Go(func() { _, errs[i] = c.Apply(ctx, fragment(i)) })
	}
	aggregatortest.Eventually(t, "all wait", func() bool { return d.Aggregator.Pending() == n })
	<-release
	wg.Wait()
	return errs
}

// hold has the first commit wait: the channel gives one value when it has begun,
// and takes effect after the second one was received.
func hold(k *aggregatortest.Kernel) <-chan struct{} {
	c := make(chan struct{})
	var once sync.Once
	refuse := k.RefuseBatch
	k.RefuseBatch = func(ops []kernel.Op) error {
		once.Do(func() { c <- struct{}{}; c <- struct{}{} })
		return refuse(ops)
	}
	return c
}

// TestOversizedBatch has the kernel take batches of limited size: updates go in
// several, and one that is too large for any is refused with the reason.
func TestOversizedBatch(t *testing.T) {
	const most = 25
	k := &aggregatortest.Kernel{}
	k.RefuseBatch = func(ops []kernel.Op) error {
		n := 0
		for _, op := range ops {
			if add, ok := op.(kernel.AddElements); ok {
				n += len(add.Elements)
			}
		}
		if n > most {
			return fmt.Errorf("commit batch: %w", kernel.ErrTooLarge)
		}
		return nil
	}
	errs := oneBatch(t, k, 8, func(i int) *weftv1.Fragment {
		n := 10
		if i == 5 {
			n = most + 1
		}
		f := blocklist(fmt.Sprintf("list-%d", i))
		for j := range n {
			f.Tables[0].Sets[0].Elements = append(f.Tables[0].Sets[0].Elements, &weftv1.Element{Key: fmt.Sprintf("10.0.%d.%d", i, j)})
		}
		return f
	})
	for i, err := range errs {
		if i != 5 {
			must(t, err)
			continue
		}
		if r := rejection(t, err, weftv1.Violation_REASON_KERNEL); !strings.Contains(r.Error(), "send buffer") {
			t.Errorf("rejection %v does not say why", r)
		}
	}
	if got := k.Elements(demo, "blocked"); len(got) != 71 {
		t.Errorf("%d elements: want 71", len(got))
	}
}

// TestOversizedRepair repairs what is too large for one batch table by table.
func TestOversizedRepair(t *testing.T) {
	k, d := startFaulty(t)
	other := blocklist("other", "10.0.0.2")
	other.Tables[0].Name = "other"
	mustApply(t, d.Dial(t, "tester"), other)
	k.RefuseBatch = func(ops []kernel.Op) error {
		for _, op := range ops {
			if kernel.TableOf(op) != kernel.TableOf(ops[0]) {
				return kernel.ErrTooLarge
			}
		}
		return nil
	}
	k.Flush()
	k.tell(kernel.Event{Table: demo, Reason: kernel.Deleted})
	aggregatortest.Eventually(t, "both tables are back", func() bool {
		return len(k.Elements(demo, "blocked")) == 1 && len(k.Elements(nft.TableID{Family: nft.FamilyIP, Name: "other"}, "blocked")) == 1
	})
}
