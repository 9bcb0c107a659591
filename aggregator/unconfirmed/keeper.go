package unconfirmed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

const (
	// MinTime and MaxTime bound the time until an update is taken back.
	MinTime = time.Second
	MaxTime = 24 * time.Hour
	// MaxContent is the size of the largest earlier content, in bytes.
	MaxContent = 16 << 20
	// maxEntries bounds the fragments that wait.
	maxEntries = 256
)

var (
	// ErrDisabled means that there is no state directory.
	ErrDisabled = errors.New("nothing can be taken back after a restart: weft has no state directory")
	// ErrWaits means that the fragment waits for a confirmation already.
	ErrWaits = errors.New("the fragment waits for a confirmation")
	// ErrNone means that the fragment does not wait for a confirmation.
	ErrNone = errors.New("no fragment waits for this confirmation")
	// ErrReverting means that the fragment is being taken back.
	ErrReverting = errors.New("the fragment is being taken back")
	// ErrNotStored means that the state directory cannot be written.
	ErrNotStored = errors.New("cannot write the state directory")
)

// errVersion means that a later version of weft wrote a file.
var errVersion = errors.New("another version of weft wrote it and takes it back when it is started again")

// Config describes a Keeper.
type Config struct {
	// Dir is the state directory; empty for none.
	Dir string
	// Revert gives a fragment the content that it had, or withdraws it if that is nil. It is
	// called again after Retry if it fails.
	Revert func(ctx context.Context, key desired.Key, before *weftv1.Fragment) error
	Retry  time.Duration
	Logger *slog.Logger
}

// Keeper has the fragments that wait for a confirmation.
type Keeper struct {
	cfg Config
	dir string
	// failing is the error of writes in tests.
	failing error
	// nudge has room for one value: Run looks at all entries.
	nudge chan struct{}

	mu      sync.Mutex
	entries map[desired.Key]*entry
}

// entry is a fragment that waits.
type entry struct {
	before *weftv1.Fragment
	// at, boot and deadline say when it is taken back.
	at       time.Time
	boot     string
	deadline time.Duration
	// busy is true while its update is being committed or its file removed, and reverting while it
	// is taken back.
	busy, reverting bool
	// reverted is closed when it has been taken back.
	reverted chan struct{}
}

// New returns a Keeper without fragments.
func New(cfg Config) *Keeper {
	k := &Keeper{cfg: cfg, nudge: make(chan struct{}, 1), entries: make(map[desired.Key]*entry)}
	if cfg.Dir != "" {
		k.dir = filepath.Join(cfg.Dir, dirName)
	}
	return k
}

// Enabled reports whether updates can be taken back.
func (k *Keeper) Enabled() bool { return k.dir != "" }

// Waits reports whether a fragment waits, and when it is taken back.
func (k *Keeper) Waits(key desired.Key) (at time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[key]
	if e == nil {
		return time.Time{}, false
	}
	return e.at, true
}

// Reserve reserves a fragment: from now on it is changed by its own update alone. The caller
// calls Begin or Cancel.
//
// Possible errors: ErrDisabled, ErrWaits.
func (k *Keeper) Reserve(key desired.Key) error {
	if !k.Enabled() {
		return ErrDisabled
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.entries[key] != nil:
		return fmt.Errorf("%w already: confirm it or take it back first", ErrWaits)
	case len(k.entries) >= maxEntries:
		return fmt.Errorf("%w: not accepted, because %d others wait already", ErrWaits, len(k.entries))
	}
	k.entries[key] = &entry{busy: true, reverted: make(chan struct{})}
	return nil
}

// Begin stores what a reserved fragment has now, before the update is committed, and returns when
// the update is taken back. The caller calls Committed or Cancel.
//
// Possible errors: ErrNotStored.
func (k *Keeper) Begin(key desired.Key, before *weftv1.Fragment, after time.Duration) (at time.Time, err error) {
	boot, now, err := clock()
	if err != nil {
		return at, fmt.Errorf("%w: %w", ErrNotStored, err)
	}
	e := &entry{before: before, at: time.Now().Add(after), boot: boot, deadline: now + after, busy: true, reverted: make(chan struct{})}
	if proto.Size(before) > MaxContent {
		return at, fmt.Errorf("%w: the earlier content has more than %d MiB", ErrNotStored, MaxContent>>20)
	}
	if err := k.write(key, e); err != nil {
		return at, fmt.Errorf("%w: %w", ErrNotStored, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries[key] = e
	return e.at, nil
}

// Committed says that the update of a fragment is committed: from now on it is taken back if its
// time is over.
func (k *Keeper) Committed(key desired.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.entries[key]; e != nil {
		e.busy = false
	}
	k.wake()
}

// Cancel ends the reservation of a fragment whose update was refused. If its file cannot be
// removed, the fragment is taken back in time, which changes nothing.
func (k *Keeper) Cancel(key desired.Key) {
	if err := k.remove(key); err != nil {
		k.cfg.Logger.Error("cannot write the state directory", "error", err)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.entries, key)
}

// Confirm keeps an update.
//
// Possible errors: ErrNone, ErrReverting, ErrNotStored.
func (k *Keeper) Confirm(key desired.Key) error {
	e, err := k.lock(key)
	if err != nil {
		return err
	}
	err = k.remove(key)
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.busy = false; err != nil {
		return fmt.Errorf("%w: %w", ErrNotStored, err)
	}
	delete(k.entries, key)
	return nil
}

// lock makes an entry busy.
func (k *Keeper) lock(key desired.Key) (*entry, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[key]
	switch {
	case e == nil:
		return nil, fmt.Errorf("%w: %s", ErrNone, key)
	case e.reverting:
		return nil, ErrReverting
	case e.busy:
		return nil, fmt.Errorf("%w: %s: its update is not committed yet", ErrNone, key)
	}
	e.busy = true
	return e, nil
}

// Revert takes an update back now, and waits for that.
//
// Possible errors: ErrNone, ErrReverting, ctx's.
func (k *Keeper) Revert(ctx context.Context, key desired.Key) error {
	e, err := k.lock(key)
	if err != nil {
		return err
	}
	k.mu.Lock()
	e.busy, e.deadline = false, 0
	k.mu.Unlock()
	k.wake()
	select {
	case <-e.reverted:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CleanedUp says that everything is removed from the kernel: only durable content comes back.
func (k *Keeper) CleanedUp() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, e := range k.entries {
		if e.before == nil || e.before.GetLifetime() == weftv1.Lifetime_LIFETIME_DURABLE {
			continue
		}
		e.before = nil
		if err := k.write(key, e); err != nil {
			k.cfg.Logger.Error("cannot write the state directory", "error", err)
		}
	}
}

func (k *Keeper) wake() {
	select {
	case k.nudge <- struct{}{}:
	default:
	}
}

// Run takes updates back until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	if !k.Enabled() {
		return
	}
	// It is looked at again after a minute, because timers stand still while a machine is suspended.
	const look = time.Minute
	reported := make(map[desired.Key]string)
	for {
		boot, now, err := clock()
		if err != nil {
			k.cfg.Logger.Error("cannot read the clock", "error", err)
		}
		wait := look
		for key, e := range k.due(boot, now, &wait) {
			if k.revert(ctx, key, e, reported) != nil {
				wait = min(wait, k.cfg.Retry)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-k.nudge:
		case <-time.After(wait):
		}
	}
}

// due returns the entries whose time is over, and shortens wait to the time of the next one.
func (k *Keeper) due(boot string, now time.Duration, wait *time.Duration) map[desired.Key]*entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make(map[desired.Key]*entry)
	for key, e := range k.entries {
		switch left := e.deadline - now; {
		case e.busy:
			// Its update is being committed, or its file removed.
			*wait = min(*wait, k.cfg.Retry)
		case left <= 0 || e.boot != boot:
			e.reverting = true
			out[key] = e
		default:
			*wait = min(*wait, left)
		}
	}
	return out
}

// revert takes one update back.
func (k *Keeper) revert(ctx context.Context, key desired.Key, e *entry, reported map[desired.Key]string) error {
	err := k.cfg.Revert(ctx, key, e.before)
	if err == nil {
		err = k.remove(key)
	}
	if err != nil {
		if ctx.Err() == nil && reported[key] != err.Error() {
			reported[key] = err.Error()
			k.cfg.Logger.Error("an update that was not confirmed cannot be taken back", "fragment", key.String(), "error", err, "retry", k.cfg.Retry)
		}
		return err
	}
	k.cfg.Logger.Info("update was not confirmed and is taken back", "fragment", key.String())
	delete(reported, key)
	k.mu.Lock()
	delete(k.entries, key)
	k.mu.Unlock()
	close(e.reverted)
	return nil
}

// clock returns the identity of the boot and the time since it.
func clock() (boot string, now time.Duration, err error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, err
	}
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return "", 0, err
	}
	return strings.TrimSpace(string(b)), time.Duration(t.Nano()), nil
}
