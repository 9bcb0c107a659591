package access

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// log collects lines.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

const wait = 3 * time.Minute

// eventually polls a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(wait)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("still not so after %v: %s", wait, what)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// open opens a configuration and follows it until the test ends.
func open(t *testing.T, path string, log *logged) *Control {
	t.Helper()
	c, err := Open(Options{File: path, Lookup: names, Logger: slog.New(slog.NewTextHandler(log, nil)), Registerer: prometheus.NewPedanticRegistry()})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var followed sync.WaitGroup
	followed.Go(func() { c.Follow(ctx, nil) })
	t.Cleanup(func() {
		cancel()
		followed.Wait()
	})
	return c
}

func has(c *Control, name string) bool { return c.Publisher(name) != nil }

func one(name string) string {
	return head + "publishers: [{name: " + name + ", match: {uid: 1}}]\n"
}

func TestFollowFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weft.yaml")
	write(t, path, one("first"))
	var log logged
	c := open(t, path, &log)
	if !has(c, "first") {
		t.Fatal("the configuration of the start is not in force")
	}
	changed := c.Changed()

	// As an editor that writes another file and renames it.
	write(t, path+".tmp", one("second"))
	must(t, os.Rename(path+".tmp", path))
	eventually(t, "second is in force", func() bool { return has(c, "second") && !has(c, "first") })
	select {
	case <-changed:
	case <-time.After(wait):
		t.Fatal("the change was not announced")
	}

	// A file that cannot be used is reported once, and the last good one stays.
	write(t, path, head+"publishers: 3\n")
	eventually(t, "the error is logged", func() bool { return strings.Contains(log.String(), "weft.yaml:3: publishers: got") })
	if !has(c, "second") || testutil.ToFloat64(c.metrics.reloadErrors) < 1 {
		t.Errorf("log %s", log.String())
	}
	must(t, os.Remove(path))
	eventually(t, "the file is missed", func() bool { return strings.Contains(log.String(), "no such file") })
	if !has(c, "second") {
		t.Error("the last good configuration did not stay")
	}
	if testutil.ToFloat64(c.metrics.reloaded) < float64(time.Now().Add(-time.Hour).Unix()) {
		t.Error("the time of the last good configuration is not told")
	}
	write(t, path, one("third"))
	eventually(t, "third is in force", func() bool { return has(c, "third") })
}

// TestFollowConfigMap swaps a link as the kubelet does: the file is a link into
// ..data, which is a link to a directory that changes.
func TestFollowConfigMap(t *testing.T) {
	dir := t.TempDir()
	version := func(name, text string) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		write(t, filepath.Join(dir, name, "weft.yaml"), text)
		must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("..1", one("first"))
	path := filepath.Join(dir, "weft.yaml")
	must(t, os.Symlink("..data/weft.yaml", path))
	var log logged
	c := open(t, path, &log)
	for _, name := range []string{"second", "third"} {
		version(".."+name, one(name))
		eventually(t, name+" is in force", func() bool { return has(c, name) })
	}
}

// TestHangupReadsAgain reads an unchanged file, because names may mean other ids.
func TestHangupReadsAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weft.yaml")
	write(t, path, head+"publishers: [{name: first, match: {uid: agent}}]")
	uid := uint32(7)
	lookup := func(string) (uint32, error) { return uid, nil }
	c, err := Open(Options{File: path, Lookup: Lookup{User: lookup, Group: lookup}})
	must(t, err)
	hangup, changed := make(chan os.Signal, 1), c.Changed()
	uid = 8
	hangup <- os.Interrupt
	ctx, cancel := context.WithCancel(t.Context())
	followed := make(chan struct{})
	go func() { defer close(followed); c.Follow(ctx, hangup) }()
	select {
	case <-changed:
	case <-time.After(wait):
		t.Error("the file was not read again")
	}
	cancel()
	<-followed
	if got := *c.Publisher("first").Match.UID; got != 8 {
		t.Errorf("uid %d, want 8", got)
	}
}

func TestBrokenFileStopsTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weft.yaml")
	write(t, path, head+"x: 1\n")
	if _, err := Open(Options{File: path, Lookup: names}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "weft.yaml:3: ") {
		t.Errorf("broken file: %v", err)
	}
	if _, err := Open(Options{File: path + ".none"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestWithoutFile(t *testing.T) {
	c, err := Open(Options{Self: to[uint32](1000)})
	must(t, err)
	c.Follow(context.Background(), nil)
	for _, tt := range []struct {
		peer Peer
		want bool
	}{
		{Peer{NetAdmin: true}, true}, {Peer{}, false}, {Peer{UID: 1000}, true}, {Peer{UID: 1001}, false},
	} {
		id, err := c.Resolve(&tt.peer, "a")
		if (err == nil) != tt.want || tt.want && (id.Publisher != "a" || !id.Admin) {
			t.Errorf("peer %+v: identity %+v, error %v", tt.peer, id, err)
		}
		if advice := err != nil && strings.Contains(err.Error(), "kubectl exec"); advice != (tt.peer.UID == 0 && !tt.want) {
			t.Errorf("peer %+v: %v", tt.peer, err)
		}
	}
	root, err := Open(Options{Self: to[uint32](0)})
	must(t, err)
	if _, err := root.Resolve(&Peer{}, ""); !errors.Is(err, ErrDenied) {
		t.Errorf("uid 0 without capabilities, as the daemon: %v", err)
	}
	if (*Control)(nil).Publisher("a") != nil {
		t.Error("no control knows a publisher")
	}
}

func TestRefusedIsCountedAndLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weft.yaml")
	write(t, path, one("first"))
	var log logged
	c, err := Open(Options{File: path, Lookup: names, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	peer := &Peer{PID: 4711, UID: 12, Executable: "/bin/x"}
	for range 500 {
		c.Refused(peer, &Refusal{Limit: LimitHook, Publisher: "first", Text: "may not"}, "Apply")
	}
	// Names that callers make up are one label.
	for _, name := range []string{"a", "b", "", strings.Repeat("c", 1000)} {
		c.Refused(peer, &Refusal{Limit: LimitPublisher, Publisher: name, Text: "who"}, "List")
	}
	if got := testutil.ToFloat64(c.metrics.refusals.WithLabelValues("first", "hooks")); got != 500 {
		t.Errorf("refusals of first: %v", got)
	}
	if got := testutil.ToFloat64(c.metrics.refusals.WithLabelValues("-", "publisher")); got != 4 {
		t.Errorf("refusals of unknown ones: %v", got)
	}
	if n := testutil.CollectAndCount(c.metrics.refusals); n != 2 {
		t.Errorf("%d time series", n)
	}
	lines := strings.Count(log.String(), "publisher=first")
	if lines != 1 {
		t.Errorf("%d lines for 500 refusals", lines)
	}
	for _, want := range []string{"pid=4711", "uid=12", "executable=/bin/x", "limit=hooks", "method=Apply", `error="may not"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %s:\n%.400s", want, log.String())
		}
	}
	c.Close()
	for _, want := range []string{`"refused more" publisher=first limit=hooks not_logged=499`, `"refused more" publisher=- limit=publisher not_logged=3`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("after Close the log does not have %s:\n%.800s", want, log.String())
		}
	}
}

func TestRepeats(t *testing.T) {
	r := NewRepeats(func(publisher, reason string, withheld int) {
		t.Errorf("%d lines of %s reported without waiting", withheld, publisher)
	})
	start := time.Unix(1e9, 0)
	for _, tt := range []struct {
		after     time.Duration
		publisher string
		skipped   int
		ok        bool
	}{
		{0, "a", 0, true},
		{0, "a", 0, false},
		{0, "b", 0, true},
		{59 * time.Second, "a", 0, false},
		{60 * time.Second, "a", 2, true},
		{61 * time.Second, "a", 0, false},
		{180 * time.Second, "a", 1, true},
		{400 * time.Second, "a", 0, true},
		// The clock was set back.
		{0, "a", 0, true},
	} {
		skipped, ok := r.Log(tt.publisher, "reason", start.Add(tt.after))
		if skipped != tt.skipped || ok != tt.ok {
			t.Errorf("%s after %v: skipped %d, %v", tt.publisher, tt.after, skipped, ok)
		}
	}
	if _, ok := r.Log("a", "another reason", start); !ok {
		t.Error("another reason is not logged")
	}
}

// TestRepeatsThatEnd checks that the number of lines that were left out is reported after a
// minute, even if nothing happens any more.
func TestRepeatsThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type line struct {
			publisher, reason string
			withheld          int
			after             time.Duration
		}
		start := time.Now()
		var got []line
		r := NewRepeats(func(publisher, reason string, withheld int) {
			got = append(got, line{publisher, reason, withheld, time.Since(start)})
		})
		log := func(want bool) {
			t.Helper()
			if skipped, ok := r.Log("a", "limit", time.Now()); ok != want || skipped != 0 {
				t.Errorf("after %v: skipped %d, %t", time.Since(start), skipped, ok)
			}
		}
		log(true)
		<-time.After(10 * time.Second)
		for range 3 {
			log(false)
		}
		r.Log("b", "limit", time.Now())
		<-time.After(51 * time.Second)
		synctest.Wait()
		want := []line{{"a", "limit", 3, time.Minute}}
		if !slices.Equal(got, want) {
			t.Fatalf("reported %v, want %v", got, want)
		}
		// The report was the line of that minute.
		log(false)
		<-time.After(time.Minute)
		synctest.Wait()
		want = append(want, line{"a", "limit", 1, 2 * time.Minute})
		if !slices.Equal(got, want) {
			t.Fatalf("reported %v, want %v", got, want)
		}
		// Nothing was left out since: there is nothing to report.
		<-time.After(5 * time.Minute)
		log(true)
		log(false)
		r.Close()
		want = append(want, line{"a", "limit", 1, time.Since(start)})
		if !slices.Equal(got, want) {
			t.Fatalf("reported %v, want %v", got, want)
		}
		log(true)
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if !slices.Equal(got, want) {
			t.Errorf("reported %v after Close", got)
		}
	})
}
