package unconfirmed

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
)

var (
	key    = desired.Key{Publisher: "tester", Name: "list"}
	before = &weftv1.Fragment{Name: "list", Nft: "table ip t { }"}
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// reverts notes what is taken back.
type reverts struct {
	mu   sync.Mutex
	errs []error
	got  []*weftv1.Fragment
	// news has a value for each call.
	news chan struct{}
}

func (r *reverts) revert(_ context.Context, _ desired.Key, f *weftv1.Fragment) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, f)
	r.news <- struct{}{}
	if len(r.errs) == 0 {
		return nil
	}
	err := r.errs[0]
	r.errs = r.errs[1:]
	return err
}

// storeOf returns the store of a directory. The one of the Keeper before is closed.
func storeOf(t *testing.T, dir string, before *Keeper) *store.Store {
	t.Helper()
	if before != nil {
		must(t, before.cfg.Store.Close())
	}
	return store.New(store.Config{Path: dir, Retry: time.Millisecond, Logger: slog.New(slog.DiscardHandler), Failed: func(kind string) { t.Errorf("%s is lost", kind) }})
}

// open returns a Keeper that has read a directory, as after a start. The Keeper before has ended.
func open(t *testing.T, dir string, before *Keeper, run bool) (*Keeper, *reverts) {
	t.Helper()
	r := &reverts{news: make(chan struct{}, 100)}
	s := storeOf(t, dir, before)
	k := New(Config{Store: s, Revert: r.revert, Retry: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	must(t, s.Load())
	t.Cleanup(func() { _ = s.Close() })
	k.Load()
	if run {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); k.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-done })
	}
	return k, r
}

func begin(t *testing.T, k *Keeper, f *weftv1.Fragment, after time.Duration) {
	t.Helper()
	must(t, k.Reserve(key))
	if _, err := k.Begin(key, f, after); err != nil {
		t.Fatal(err)
	}
}

// gone waits until the fragment does not wait.
func gone(t *testing.T, k *Keeper) {
	t.Helper()
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		if _, waits := k.Waits(key); !waits {
			return
		}
	}
}

// TestTime has the time end, before and after a restart and after a reboot; a failure is
// tried again.
func TestTime(t *testing.T) {
	dir := t.TempDir()
	k, r := open(t, dir, nil, true)
	r.errs = []error{errors.New("refused"), errors.New("refused")}
	begin(t, k, before, time.Millisecond)
	// Until the update is committed it is not taken back.
	wantErr(t, "confirmed before the commit", k.Confirm(key), ErrNone)
	k.Committed(key)
	gone(t, k)
	if len(r.got) != 3 {
		t.Errorf("%d attempts, want 3", len(r.got))
	}

	k.disk.Lock()
	k.boot = "another"
	k.disk.Unlock()
	begin(t, k, before, time.Hour)
	rebooted, r := open(t, dir, k, true)
	<-r.news
	gone(t, rebooted)
}

// TestCleanedUp takes back what is durable only.
func TestCleanedUp(t *testing.T) {
	for _, life := range []weftv1.Lifetime{weftv1.Lifetime_LIFETIME_STICKY, weftv1.Lifetime_LIFETIME_DURABLE} {
		dir := t.TempDir()
		k, _ := open(t, dir, nil, false)
		f := proto.CloneOf(before)
		f.Lifetime = life
		begin(t, k, f, time.Hour)
		k.CleanedUp()
		k, r := open(t, dir, k, true)
		must(t, k.Revert(t.Context(), key))
		if durable := life == weftv1.Lifetime_LIFETIME_DURABLE; (r.got[0] != nil) != durable {
			t.Errorf("%v: taken back %v", life, r.got[0])
		}
	}
}

// TestRefused has everything that is not accepted.
func TestRefused(t *testing.T) {
	wantErr(t, "without a directory", New(Config{Store: storeOf(t, "", nil)}).Reserve(key), ErrDisabled)
	k, _ := open(t, t.TempDir(), nil, false)
	begin(t, k, before, time.Hour)
	wantErr(t, "it waits", k.Reserve(key), ErrWaits)
	k.Cancel(key)
	must(t, k.Reserve(key))
	_, err := k.Begin(key, &weftv1.Fragment{Nft: string(make([]byte, MaxContent+1))}, time.Hour)
	wantErr(t, "too large", err, ErrNotStored)
	k.Cancel(key)
	for i := range maxOfPublisher {
		must(t, k.Reserve(desired.Key{Publisher: "many", Name: strconv.Itoa(i)}))
	}
	wantErr(t, "too many of one publisher", k.Reserve(desired.Key{Publisher: "many", Name: "more"}), ErrWaits)
	for i := range maxEntries - maxOfPublisher {
		must(t, k.Reserve(desired.Key{Publisher: strconv.Itoa(i), Name: "one"}))
	}
	wantErr(t, "too many", k.Reserve(desired.Key{Publisher: "one", Name: "more"}), ErrWaits)
}

// TestKept has a publisher keep as much as is allowed, and no more: it is counted from the first byte until it is
// removed.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	k, _ := open(t, dir, nil, false)
	large := &weftv1.Fragment{Nft: strings.Repeat("x", MaxContent/2)}
	full := 0
	for i := range maxOfPublisher {
		key := desired.Key{Publisher: "tester", Name: strconv.Itoa(i)}
		must(t, k.Reserve(key))
		if _, err := k.Begin(key, large, time.Hour); err != nil {
			if !errors.Is(err, ErrNotStored) {
				t.Fatal(err)
			}
			k.Cancel(key)
			full = i
			break
		}
		k.Committed(key)
	}
	if kept := k.Kept("tester"); full == 0 || kept > maxKept || kept < full*MaxContent/2 || kept != onDisk(t, k) {
		t.Fatalf("%d updates keep %d bytes, %d on disk: at most %d are allowed", full, kept, onDisk(t, k), maxKept)
	}
	if k.Kept("another") != 0 {
		t.Error("another publisher has to pay")
	}
	if k, _ = open(t, dir, k, false); k.Kept("tester") != onDisk(t, k) {
		t.Errorf("%d bytes are kept after a restart, %d on disk", k.Kept("tester"), onDisk(t, k))
	}
	// What is left because it cannot be removed is still counted.
	k.failing = func(string) error { return errors.New("read-only file system") }
	k.Cancel(desired.Key{Publisher: "tester", Name: "0"})
	if k.Kept("tester") != onDisk(t, k) {
		t.Errorf("%d bytes are kept with one that is left, %d on disk", k.Kept("tester"), onDisk(t, k))
	}
	k.failing = func(string) error { return nil }
	for range full {
		for key := range k.entries {
			if _, waits := k.Waits(key); !waits {
				continue
			}
			must(t, k.Confirm(key))
		}
	}
	k.step(t.Context())
	if k.Kept("tester") != 0 || onDisk(t, k) != 0 {
		t.Errorf("%d bytes are kept in the end, %d on disk", k.Kept("tester"), onDisk(t, k))
	}

	refused := errors.New("over the limit")
	k.cfg.Allow = func(_ desired.Key, kept, more int) error {
		if kept != 0 || more < len(before.GetNft()) {
			t.Errorf("asked for %d bytes beside %d", more, kept)
		}
		return refused
	}
	must(t, k.Reserve(key))
	if _, err := k.Begin(key, before, time.Hour); !errors.Is(err, refused) || onDisk(t, k) != 0 {
		t.Errorf("over the limit of the publisher: %v", err)
	}
}

// onDisk returns the size of all that is stored, without keys.
func onDisk(t *testing.T, k *Keeper) (n int) {
	t.Helper()
	err := k.cfg.Store.View(func(tx *store.Tx) error {
		b, err := tx.Bucket(bucket)
		if err != nil {
			return err
		}
		n = int(b.Size()) - b.Count()*len(updateKey)
		return nil
	})
	must(t, err)
	return n
}

// TestConfirmAndRevertAtOnce has both come at the same time: one of them wins, and the other one ends.
func TestConfirmAndRevertAtOnce(t *testing.T) {
	k, _ := open(t, t.TempDir(), nil, true)
	for i := range 90 {
		begin(t, k, before, time.Hour)
		k.Committed(key)
		var confirmed, reverted error
		var wg sync.WaitGroup
		wg.Go(func() { confirmed = k.Confirm(key) })
		wg.Go(func() { reverted = k.Revert(t.Context(), key) })
		wg.Wait()
		if (confirmed == nil) == (reverted == nil) {
			t.Fatalf("round %d: confirmed: %v, taken back: %v", i, confirmed, reverted)
		}
		gone(t, k)
	}
}
