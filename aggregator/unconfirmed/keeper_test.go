package unconfirmed

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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

// open returns a Keeper that has read a directory, as after a start.
func open(t *testing.T, dir string, run bool) (*Keeper, *reverts) {
	t.Helper()
	r := &reverts{news: make(chan struct{}, 100)}
	k := New(Config{Dir: dir, Revert: r.revert, Retry: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
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
	if err := k.Reserve(key); err != nil {
		t.Fatal(err)
	}
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

// TestKilled has a process end at each step, and looks what the next one does.
func TestKilled(t *testing.T) {
	for _, test := range []struct {
		name   string
		before *weftv1.Fragment
		until  func(*testing.T, *Keeper)
		waits  bool
	}{
		{"before the update is committed", before, func(t *testing.T, k *Keeper) { begin(t, k, before, time.Hour) }, true},
		{"after it", before, func(t *testing.T, k *Keeper) { begin(t, k, before, time.Hour); k.Committed(key) }, true},
		{"after a new fragment", nil, func(t *testing.T, k *Keeper) { begin(t, k, nil, time.Hour); k.Committed(key) }, true},
		{"after a confirmation", nil, func(t *testing.T, k *Keeper) {
			begin(t, k, before, time.Hour)
			k.Committed(key)
			if err := k.Confirm(key); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"after a refusal", nil, func(t *testing.T, k *Keeper) { begin(t, k, before, time.Hour); k.Cancel(key) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			k, _ := open(t, dir, false)
			test.until(t, k)
			k, r := open(t, dir, true)
			at, waits := k.Waits(key)
			if waits != test.waits || waits && time.Until(at) < 50*time.Minute {
				t.Fatalf("it waits: %v, until %v", waits, at)
			}
			if !waits {
				return
			}
			if err := k.Revert(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if len(r.got) != 1 || !proto.Equal(r.got[0], test.before) {
				t.Errorf("taken back %v, want %v once", r.got, test.before)
			}
			if k, _ = open(t, dir, false); len(k.entries) != 0 {
				t.Error("it is taken back at the next start too")
			}
		})
	}
}

// TestTime has the time end, before and after a restart and after a reboot; a failure is
// tried again.
func TestTime(t *testing.T) {
	dir := t.TempDir()
	k, r := open(t, dir, true)
	r.errs = []error{errors.New("refused"), errors.New("refused")}
	begin(t, k, before, time.Millisecond)
	// Until the update is committed it is not taken back.
	if err := k.Confirm(key); !errors.Is(err, ErrNone) {
		t.Errorf("confirmed before the commit: %v", err)
	}
	k.Committed(key)
	gone(t, k)
	if len(r.got) != 3 {
		t.Errorf("%d attempts, want 3", len(r.got))
	}

	begin(t, k, before, time.Hour)
	path := filepath.Join(dir, dirName, fileOf(key))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := store.BootID()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), boot, "another", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	rebooted, r := open(t, dir, true)
	<-r.news
	gone(t, rebooted)
}

// TestCleanedUp takes back what is durable only.
func TestCleanedUp(t *testing.T) {
	for _, life := range []weftv1.Lifetime{weftv1.Lifetime_LIFETIME_STICKY, weftv1.Lifetime_LIFETIME_DURABLE} {
		dir := t.TempDir()
		k, _ := open(t, dir, false)
		f := proto.CloneOf(before)
		f.Lifetime = life
		begin(t, k, f, time.Hour)
		k.CleanedUp()
		k, r := open(t, dir, true)
		if err := k.Revert(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if durable := life == weftv1.Lifetime_LIFETIME_DURABLE; (r.got[0] != nil) != durable {
			t.Errorf("%v: taken back %v", life, r.got[0])
		}
	}
}

// TestDamage has files that cannot be used: they are put aside, and the others are read.
func TestDamage(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"no JSON":           func(s string) string { return s[:len(s)/2] },
		"another's name":    func(s string) string { return strings.Replace(s, "tester", "system", 1) },
		"another content":   func(s string) string { return strings.Replace(s, `"before":"`, `"before":"AAAA`, 1) },
		"an empty file":     func(string) string { return "" },
		"no content at all": func(s string) string { return strings.Replace(s, `"sum":`, `"sum":1`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			k, _ := open(t, dir, false)
			begin(t, k, before, time.Hour)
			path := filepath.Join(dir, dirName, fileOf(key))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(change(string(b))), 0o600); err != nil {
				t.Fatal(err)
			}
			if k, _ = open(t, dir, false); len(k.entries) != 0 {
				t.Error("it is used")
			}
			if _, err := os.Stat(path + damagedSuffix); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLaterVersion has the file of a later version: it is left to that version. Files without a version are the first ones.
func TestLaterVersion(t *testing.T) {
	dir := t.TempDir()
	k, _ := open(t, dir, false)
	begin(t, k, before, time.Hour)
	path := filepath.Join(dir, dirName, fileOf(key))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for field, used := range map[string]bool{`"version":2,`: false, `"version":1,`: true, ``: true} {
		text := strings.Replace(string(b), `"version":1,`, field, 1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if k, _ := open(t, dir, false); (len(k.entries) == 1) != used {
			t.Errorf("with %q: used: %t, want %t", field, !used, used)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("with %q: the file was changed (%v)", field, err)
		}
	}
}

// TestRefused has everything that is not accepted.
func TestRefused(t *testing.T) {
	if err := New(Config{}).Reserve(key); !errors.Is(err, ErrDisabled) {
		t.Errorf("without a directory: %v", err)
	}
	k, _ := open(t, t.TempDir(), false)
	if err := k.Confirm(key); !errors.Is(err, ErrNone) {
		t.Errorf("nothing waits: %v", err)
	}
	begin(t, k, before, time.Hour)
	if err := k.Reserve(key); !errors.Is(err, ErrWaits) {
		t.Errorf("it waits: %v", err)
	}
	k.Cancel(key)
	if err := k.Reserve(key); err != nil {
		t.Fatal(err)
	}
	k.failing = func(string) error { return errors.New("no space left on device") }
	if _, err := k.Begin(key, before, time.Hour); !errors.Is(err, ErrNotStored) {
		t.Errorf("a full disk: %v", err)
	}
	k.failing = func(string) error { return nil }
	if _, err := k.Begin(key, &weftv1.Fragment{Nft: string(make([]byte, MaxContent+1))}, time.Hour); !errors.Is(err, ErrNotStored) {
		t.Errorf("too large: %v", err)
	}
	k.Cancel(key)
	for i := range maxOfPublisher {
		if err := k.Reserve(desired.Key{Publisher: "many", Name: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Reserve(desired.Key{Publisher: "many", Name: "more"}); !errors.Is(err, ErrWaits) {
		t.Errorf("too many of one publisher: %v", err)
	}
	for i := range maxEntries - maxOfPublisher {
		if err := k.Reserve(desired.Key{Publisher: strconv.Itoa(i), Name: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Reserve(desired.Key{Publisher: "one", Name: "more"}); !errors.Is(err, ErrWaits) {
		t.Errorf("too many: %v", err)
	}
}

// TestKept has a publisher keep as much as is allowed, and no more: what is kept is counted from the first byte to
// the removal of the last file.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	k, _ := open(t, dir, false)
	large := &weftv1.Fragment{Nft: strings.Repeat("x", MaxContent/2)}
	full := 0
	for i := range maxOfPublisher {
		key := desired.Key{Publisher: "tester", Name: strconv.Itoa(i)}
		if err := k.Reserve(key); err != nil {
			t.Fatal(err)
		}
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
	if kept := k.Kept("tester"); full == 0 || kept > maxKept || kept < full*MaxContent/2 || kept != onDisk(t, dir) {
		t.Fatalf("%d updates keep %d bytes, %d on disk: at most %d are allowed", full, kept, onDisk(t, dir), maxKept)
	}
	if k.Kept("another") != 0 {
		t.Error("another publisher has to pay")
	}
	if k, _ = open(t, dir, false); k.Kept("tester") != onDisk(t, dir) {
		t.Errorf("%d bytes are kept after a restart, %d on disk", k.Kept("tester"), onDisk(t, dir))
	}
	// What is left because it cannot be removed is still counted.
	k.failing = func(string) error { return errors.New("read-only file system") }
	k.Cancel(desired.Key{Publisher: "tester", Name: "0"})
	if k.Kept("tester") != onDisk(t, dir) {
		t.Errorf("%d bytes are kept with one that is left, %d on disk", k.Kept("tester"), onDisk(t, dir))
	}
	k.failing = func(string) error { return nil }
	for range full {
		for key := range k.entries {
			if _, waits := k.Waits(key); !waits {
				continue
			}
			if err := k.Confirm(key); err != nil {
				t.Fatal(err)
			}
		}
	}
	k.step(t.Context())
	if k.Kept("tester") != 0 || onDisk(t, dir) != 0 {
		t.Errorf("%d bytes are kept in the end, %d on disk", k.Kept("tester"), onDisk(t, dir))
	}

	refused := errors.New("over the limit")
	k.cfg.Allow = func(_ desired.Key, kept, more int) error {
		if kept != 0 || more < len(before.GetNft()) {
			t.Errorf("asked for %d bytes beside %d", more, kept)
		}
		return refused
	}
	if err := k.Reserve(key); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Begin(key, before, time.Hour); !errors.Is(err, refused) || onDisk(t, dir) != 0 {
		t.Errorf("over the limit of the publisher: %v", err)
	}
}

// onDisk returns the size of all files.
func onDisk(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, dirName))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += int(info.Size())
	}
	return n
}

// TestConfirmAndRevertAtOnce has both come at the same time: one of them wins, and the other one ends.
func TestConfirmAndRevertAtOnce(t *testing.T) {
	dir := t.TempDir()
	k, _ := open(t, dir, true)
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
