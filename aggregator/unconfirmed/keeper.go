package unconfirmed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/retry"
	"github.com/weft-proxy/weft/aggregator/store"
)

const (
	// MinTime and MaxTime bound the time until an update is taken back.
	MinTime = time.Second
	MaxTime = 24 * time.Hour
	// MaxContent bounds the earlier content in bytes.
	MaxContent = 16 << 20
	// maxEntries bounds waiting fragments, maxOfPublisher by publisher.
	maxEntries     = 256
	maxOfPublisher = 32
	// maxKept bounds a publisher's stored bytes.
	maxKept = 2 * MaxContent
)

var (
	ErrDisabled = errors.New("nothing can be taken back after a restart: weft has no state directory")
	ErrWaits    = errors.New("the fragment waits for a confirmation")
	// ErrNone means that the fragment does not wait.
	ErrNone      = errors.New("no fragment waits for this confirmation")
	ErrReverting = errors.New("the fragment is being taken back")
	// ErrNotStored means that the store lacks the change: it is too large, or a write failed.
	ErrNotStored = errors.New("cannot write the state directory")
)

type Config struct {
	// Store is not loaded yet. Without a directory no update can be taken back.
	Store *store.Store
	// Revert gives a fragment its earlier content; nil withdraws it. A failed call is repeated
	// after Retry.
	Revert func(ctx context.Context, key desired.Key, before *weftv1.Fragment) error
	// Allow returns why a publisher with kept bytes may not have more; nil allows all.
	Allow  func(key desired.Key, kept, more int) error
	Retry  time.Duration
	Logger *slog.Logger
}

type state int

const (
	// committing: storing the earlier content, or the update.
	committing state = iota
	waiting
	confirming
	// reverting, or waiting again after a failure.
	reverting
	// ended: only left in the store.
	ended
)

// Keeper has the fragments that wait for a confirmation.
type Keeper struct {
	cfg Config
	// Tests replace readBoot, now and failing (errors of writes and removals).
	readBoot func() (string, error)
	now      func() time.Duration
	failing  func(operation string) error
	task     *retry.Task

	// disk is held while the store is used. It is locked before mu; mu is not held during I/O.
	disk sync.Mutex
	// boot caches readBoot. disk guards it.
	boot string

	mu      sync.Mutex
	entries map[desired.Key]*entry
}

type entry struct {
	state  state
	before *weftv1.Fragment
	// size is in bytes. stored is true also if the store has an ended entry of the fragment.
	size     int
	stored   bool
	at       time.Time
	boot     string
	deadline time.Duration
	overdue  bool
	// overdue is true after a failed revert. attempt is the present or next one.
	attempt *attempt
}

// attempt is an attempt to take an update back: err is set when done is closed.
type attempt struct {
	done chan struct{}
	err  error
}

func newAttempt() *attempt { return &attempt{done: make(chan struct{})} }

func New(cfg Config) *Keeper {
	k := &Keeper{
		cfg: cfg, readBoot: store.BootID, now: bootTime, failing: func(string) error { return nil }, entries: make(map[desired.Key]*entry),
	}
	k.task = retry.New(retry.Config{
		Do: k.step, Retry: cfg.Retry, Logger: cfg.Logger, Failing: "updates that were not confirmed cannot be taken back", Failed: func() {},
	})
	cfg.Store.Register(store.Part{Bucket: bucket, Kind: Kind, Single: true, Lost: "an update that was not confirmed stays, because the earlier content cannot be read"})
	return k
}

func (k *Keeper) Enabled() bool { return k.cfg.Store.Enabled() }

// Waits reports whether a fragment waits, and when it is taken back.
func (k *Keeper) Waits(key desired.Key) (at time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.active(key); e != nil {
		return e.at, true
	}
	return time.Time{}, false
}

// active returns an entry that has not ended, or nil. mu is held.
func (k *Keeper) active(key desired.Key) *entry {
	if e := k.entries[key]; e != nil && e.state != ended {
		return e
	}
	return nil
}

// Kept returns the size of a publisher's entries in bytes.
func (k *Keeper) Kept(publisher string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, _ := k.kept(publisher)
	return n
}

// kept is called with mu held.
func (k *Keeper) kept(publisher string) (bytes, entries int) {
	for key, e := range k.entries {
		if key.Publisher == publisher {
			bytes, entries = bytes+e.size, entries+1
		}
	}
	return bytes, entries
}

// Reserve reserves a fragment for an update that needs a confirmation. The caller calls Begin or
// Cancel.
//
// Possible errors: ErrDisabled, ErrWaits.
func (k *Keeper) Reserve(key desired.Key) error {
	if !k.Enabled() {
		return ErrDisabled
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	_, own := k.kept(key.Publisher)
	switch {
	case k.active(key) != nil:
		return fmt.Errorf("%w already: confirm it or take it back first", ErrWaits)
	case own >= maxOfPublisher:
		return fmt.Errorf("%w: not accepted, because %d others of publisher %s wait already: confirm one or take it back", ErrWaits, own, key.Publisher)
	case len(k.entries) >= maxEntries:
		return fmt.Errorf("%w: not accepted, because %d others wait already", ErrWaits, len(k.entries))
	}
	e := &entry{attempt: newAttempt()}
	if left := k.entries[key]; left != nil {
		e.size, e.stored = left.size, left.stored
	}
	k.entries[key] = e
	return nil
}

// Begin stores the content of a reserved fragment before its update, and returns the time of the
// revert. The caller calls Committed or Cancel.
//
// Possible errors: ErrNotStored, Config.Allow's.
func (k *Keeper) Begin(key desired.Key, before *weftv1.Fragment, after time.Duration) (at time.Time, err error) {
	k.disk.Lock()
	defer k.disk.Unlock()
	boot, err := k.bootNow()
	if err != nil {
		return at, fmt.Errorf("%w: %w", ErrNotStored, err)
	}
	if proto.Size(before) > MaxContent {
		return at, fmt.Errorf("%w: the earlier content has more than %d MiB", ErrNotStored, MaxContent>>20)
	}
	e := &entry{before: before, at: time.Now().Add(after), boot: boot, deadline: k.now() + after, attempt: newAttempt()}
	update, content, err := encode(e)
	if err != nil {
		return at, fmt.Errorf("%w: %w", ErrNotStored, err)
	}
	e.size = len(update) + len(content)
	k.mu.Lock()
	if kept, _ := k.kept(key.Publisher); kept+e.size > maxKept {
		err = fmt.Errorf("%w: more than %d MiB would be kept for publisher %s: confirm an update or take it back", ErrNotStored, maxKept>>20, key.Publisher)
	} else if k.cfg.Allow != nil {
		err = k.cfg.Allow(key, kept, e.size)
	}
	if err == nil {
		e.size, e.stored = max(e.size, k.entries[key].size), k.entries[key].stored
		k.entries[key] = e
	}
	k.mu.Unlock()
	if err != nil {
		return at, err
	}
	if err := k.write(key, update, content); err != nil {
		return at, fmt.Errorf("%w: %w", ErrNotStored, err)
	}
	return e.at, nil
}

// Committed says that the update is committed: from now on it can be taken back.
func (k *Keeper) Committed(key desired.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.entries[key]; e != nil {
		e.state = waiting
	}
	k.task.Wake(0)
}

// Cancel ends the reservation after a refused update. If the removal from the store fails, Run
// tries again; until then it counts.
func (k *Keeper) Cancel(key desired.Key) {
	if err := k.finish(key, ended); err != nil {
		k.cfg.Logger.Error("remove an update that waits no more from the state directory", "fragment", key.String(), "error", err, "retry", k.cfg.Retry)
	}
}

// finish removes an entry, also from the store. After a failure it has the state otherwise.
func (k *Keeper) finish(key desired.Key, otherwise state) error {
	k.disk.Lock()
	defer k.disk.Unlock()
	k.mu.Lock()
	stored := k.entries[key].stored
	k.mu.Unlock()
	var err error
	if stored {
		err = k.remove(key)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		delete(k.entries, key)
		return nil
	}
	k.entries[key].state = otherwise
	k.task.Wake(0)
	return err
}

// Confirm keeps an update.
//
// Possible errors: ErrNone, ErrReverting, ErrNotStored.
func (k *Keeper) Confirm(key desired.Key) error {
	if _, err := k.from(key, confirming); err != nil {
		return err
	}
	if err := k.finish(key, waiting); err != nil {
		return fmt.Errorf("%w: %w", ErrNotStored, err)
	}
	return nil
}

// from moves a waiting entry to another state. With ErrReverting it returns the present attempt.
func (k *Keeper) from(key desired.Key, to state) (*attempt, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch e := k.active(key); {
	case e == nil:
		return nil, fmt.Errorf("%w: %s", ErrNone, key)
	case e.state == committing:
		return nil, fmt.Errorf("%w: %s: its update is not committed yet", ErrNone, key)
	case e.state == confirming:
		return nil, fmt.Errorf("%w: %s: it is being confirmed", ErrNone, key)
	case e.state == reverting:
		return e.attempt, ErrReverting
	default:
		e.state = to
		return e.attempt, nil
	}
}

// Revert takes an update back, with one attempt. After a failure it waits again.
//
// Possible errors: ErrNone, Config.Revert's, ctx's.
func (k *Keeper) Revert(ctx context.Context, key desired.Key) error {
	a, err := k.from(key, reverting)
	if a == nil {
		return err
	}
	k.task.Wake(0)
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CleanedUp says that the kernel is empty: a revert brings back only durable content.
func (k *Keeper) CleanedUp() {
	k.disk.Lock()
	defer k.disk.Unlock()
	k.mu.Lock()
	gone := make(map[desired.Key]*entry)
	for key, e := range k.entries {
		if e.state != ended && e.before != nil && e.before.GetLifetime() != weftv1.Lifetime_LIFETIME_DURABLE {
			e.before, gone[key] = nil, e
		}
	}
	k.mu.Unlock()
	for key, e := range gone {
		update, content, err := encode(e)
		if err == nil {
			err = k.write(key, update, content)
		}
		if err != nil {
			k.cfg.Logger.Error("cannot write the state directory", "error", err)
		}
	}
}

func (k *Keeper) Run(ctx context.Context) {
	if k.Enabled() {
		k.task.Wake(0)
		k.task.Run(ctx, ctx)
	}
}

// step takes back due updates, and plans the next step.
func (k *Keeper) step(ctx context.Context) error {
	wait := time.Minute
	k.disk.Lock()
	boot, err := k.bootNow()
	k.disk.Unlock()
	errs := []error{err}
	due := k.due(boot, &wait)
	for _, key := range slices.SortedFunc(maps.Keys(due), desired.Key.Compare) {
		e := due[key]
		a, err := e.attempt, k.cfg.Revert(ctx, key, e.before)
		if err != nil {
			errs = append(errs, fmt.Errorf("fragment %s: %w", key, err))
			k.mu.Lock()
			e.state, e.overdue, e.attempt = waiting, true, newAttempt()
			k.mu.Unlock()
		} else {
			k.cfg.Logger.Info("update was not confirmed and is taken back", "fragment", key.String())
			k.Cancel(key)
		}
		a.err = err
		close(a.done)
	}
	k.task.Wake(wait)
	return errors.Join(append(errs, k.removeLeft())...)
}

// due returns the entries to take back, and shortens wait to the next time. Without boot no time is
// over.
func (k *Keeper) due(boot string, wait *time.Duration) map[desired.Key]*entry {
	now := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make(map[desired.Key]*entry)
	for key, e := range k.entries {
		left := e.deadline - now
		over := e.overdue || boot != "" && (left <= 0 || e.boot != boot)
		switch {
		case e.state == reverting || e.state == waiting && over:
			e.state = reverting
			out[key] = e
		case e.state == waiting && boot != "":
			*wait = min(*wait, left)
		}
	}
	return out
}

func (k *Keeper) bootNow() (string, error) {
	if k.boot != "" {
		return k.boot, nil
	}
	boot, err := k.readBoot()
	if err != nil {
		return "", err
	}
	k.boot = boot
	return boot, nil
}

func bootTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano())
}
