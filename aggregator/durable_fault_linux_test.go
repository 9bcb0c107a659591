package aggregator_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// logText is a log that tests read.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), text)
}

// observed is a Config whose log and metrics the test reads.
func observed(cfg aggregator.Config) (aggregator.Config, *logText, *prometheus.Registry) {
	log, reg := &logText{}, prometheus.NewPedanticRegistry()
	cfg.Logger, cfg.Registerer = slog.New(slog.NewTextHandler(log, nil)), reg
	return cfg, log, reg
}

// metric returns the value of a counter or gauge, all its labels together, or of
// the ones with a label of that value.
func metric(t *testing.T, reg *prometheus.Registry, name, label string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if label != "" && (len(m.GetLabel()) == 0 || m.GetLabel()[0].GetValue() != label) {
				continue
			}
			found = true
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	if !found {
		t.Fatalf("metric %s %s not found", name, label)
	}
	return sum
}

func durable(f *weftv1.Fragment) *weftv1.Fragment {
	f.Lifetime = weftv1.Lifetime_LIFETIME_DURABLE
	return f
}

// damages are what may be found in the place of a file of weft's.
var damages = []struct {
	name string
	do   func(t *testing.T, path string)
}{
	{"empty", func(t *testing.T, path string) { rewrite(t, path, func(b []byte) []byte { return nil }) }},
	{"truncated", func(t *testing.T, path string) { rewrite(t, path, func(b []byte) []byte { return b[:100] }) }},
	{"bit flipped", func(t *testing.T, path string) {
		rewrite(t, path, func(b []byte) []byte { b[20] ^= 4; return b })
	}},
	{"writable by others", func(t *testing.T, path string) { must(t, os.Chmod(path, 0o666)) }},
	{"of another user", func(t *testing.T, path string) {
		nfttest.Require(t, nfttest.Users)
		must(t, os.Chown(path, 12345, -1))
	}},
	{"directory", func(t *testing.T, path string) { replace(t, path, os.MkdirAll(filepath.Join(path+".new", "x"), 0o700)) }},
	{"fifo", func(t *testing.T, path string) { replace(t, path, unix.Mkfifo(path+".new", 0o600)) }},
	{"dangling link", func(t *testing.T, path string) { replace(t, path, os.Symlink("/nowhere", path+".new")) }},
	{"link to a device", func(t *testing.T, path string) { replace(t, path, os.Symlink("/dev/zero", path+".new")) }},
	{"socket, which cannot be opened", func(t *testing.T, path string) {
		// A socket's path is short: bind it through a link to the directory.
		fd, err := os.Open(filepath.Dir(path))
		must(t, err)
		defer func() { _ = fd.Close() }()
		must(t, os.Remove(path))
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "/proc/self/fd/" + strconv.Itoa(int(fd.Fd())) + "/" + filepath.Base(path), Net: "unix"})
		must(t, err)
		l.SetUnlinkOnClose(false)
		must(t, l.Close())
	}},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func rewrite(t *testing.T, path string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, f(b), 0o600))
}

// replace puts path.new, which has just been made, into the place of path.
func replace(t *testing.T, path string, err error) {
	t.Helper()
	must(t, err)
	must(t, os.Remove(path))
	must(t, os.Rename(path+".new", path))
}

// TestDamagedDurableIsMoved reboots with something else in the place of the
// database: the damage is kept and told, and publishers store their fragments again.
func TestDamagedDurableIsMoved(t *testing.T) {
	for _, damage := range damages {
		t.Run(damage.name, func(t *testing.T) {
			dir, ctx := t.TempDir(), aggregatortest.Context(t)
			d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir}})
			c := d.Dial(t, "tester")
			_, err := c.Apply(ctx, durable(blocklist("list", "10.0.0.1")))
			must(t, err)
			must(t, d.Stop())
			path := database(dir)
			damage.do(t, path)

			k := &aggregatortest.Kernel{}
			cfg, log, reg := observed(aggregator.Config{Kernel: k, StateDir: dir})
			d = aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
			if _, err := os.Lstat(path + ".damaged"); err != nil {
				t.Error(err)
			}
			if n := metric(t, reg, "weft_state_errors_total", "durable"); n != 1 || !log.has(path+".damaged") {
				t.Errorf("%v errors are counted, log %s", n, log.b.String())
			}
			// Its publisher stores it again.
			_, err = d.Dial(t, "tester").Apply(ctx, durable(blocklist("list", "10.0.0.1")))
			must(t, err)
			must(t, d.Stop())
			k = &aggregatortest.Kernel{}
			aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
			wantElements(t, k, "10.0.0.1")
		})
	}
}

// TestDamagedRecordTakesNothing restarts with something else in the place of the
// record: what is in the kernel stays, and returns to its publisher for nothing.
func TestDamagedRecordTakesNothing(t *testing.T) {
	for _, damage := range damages {
		t.Run(damage.name, func(t *testing.T) {
			dir, ctx, k := t.TempDir(), aggregatortest.Context(t), &aggregatortest.Kernel{}
			d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
			_, err := d.Dial(t, "tester").Apply(ctx, blocklist("list", "10.0.0.1"))
			must(t, err)
			must(t, d.Stop())
			path := database(dir)
			damage.do(t, path)

			cfg, log, reg := observed(aggregator.Config{Kernel: k, StateDir: dir})
			d = aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
			wantElements(t, k, "10.0.0.1")
			if _, err := os.Lstat(path + ".damaged"); err != nil {
				t.Error(err)
			}
			if n := metric(t, reg, "weft_state_errors_total", "record"); n != 1 || !log.has("record is lost") {
				t.Errorf("%v errors are counted, log %s", n, log.b.String())
			}
			_, err = d.Dial(t, "tester").Apply(ctx, blocklist("list", "10.0.0.1"))
			must(t, err)
			if n := len(k.Commits()); n != 1 {
				t.Fatalf("%d commits: want the one before the restart", n)
			}
		})
	}
}

// TestLostRecordIsNotMadeUp restarts twice after a record was lost: the record
// that the second run wrote must not pass for a whole one, or the return of all
// who are in it would sweep away what others own.
func TestLostRecordIsNotMadeUp(t *testing.T) {
	dir, ctx, k := t.TempDir(), aggregatortest.Context(t), &aggregatortest.Kernel{}
	start := func() *aggregatortest.Daemon {
		return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	}
	d := start()
	c := d.Dial(t, "tester")
	// The one who does not return has only elements, which name no fragment.
	away := blocklist("away", "10.0.0.7")
	away.Tables[0].Chains = nil
	away.Tables[0].Sets[0].Name = "others"
	for _, f := range []*weftv1.Fragment{away, blocklist("list", "10.0.0.1")} {
		_, err := c.Apply(ctx, f)
		must(t, err)
	}
	must(t, d.Stop())
	must(t, os.Remove(database(dir)))
	for range 2 {
		d = start()
		_, err := d.Dial(t, "tester").Apply(ctx, blocklist("list", "10.0.0.1"))
		must(t, err)
		// Something that is recorded, so that there is a new record.
		_, err = d.Dial(t, "tester").Apply(ctx, blocklist("more", "10.0.0.2"))
		must(t, err)
		must(t, d.Stop())
		if got := k.Elements(demo, "others"); len(got) != 1 {
			t.Fatalf("elements of the one who is away: %v", got)
		}
	}
}

// TestStateDirectoryFull lets the disk run full under a daemon.
func TestStateDirectoryFull(t *testing.T) {
	fs, ctx, k := newStateFS(t, "1m"), aggregatortest.Context(t), &aggregatortest.Kernel{}
	cfg, _, reg := observed(aggregator.Config{Kernel: k, StateDir: fs.Dir, Retry: 1e6})
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	c := d.Dial(t, "tester")
	_, err := c.Apply(ctx, durable(blocklist("kept", "10.0.0.1")))
	must(t, err)
	s := raw(t, d, "tester")
	wantCommitted(t, exchange(t, s, snapshotOf(1, durable(blocklist("patched", "10.0.0.2")))))
	free := fs.fill(t)

	// A snapshot is refused, and changes nothing.
	for _, f := range []*weftv1.Fragment{durable(blocklist("kept", "10.0.0.8")), durable(blocklist("new", "10.0.0.9"))} {
		_, err := c.Apply(ctx, f)
		if r := rejection(t, err, weftv1.Violation_REASON_LIMIT); !strings.Contains(r.Error(), "no space left") {
			t.Errorf("rejection %v does not say why", r)
		}
	}
	wantElements(t, k, "10.0.0.1", "10.0.0.2")
	// The first patch that has no room is in force, and says that it is not stored;
	// the second one is refused.
	many := members(3000)
	r := exchange(t, s, patchOf(2, patch("patched", many, nil)))
	wantReason(t, r, weftv1.Violation_REASON_LIMIT)
	if text := r.GetRejected().GetViolations()[0].GetMessage(); !strings.Contains(text, "in force") {
		t.Errorf("answer %q", text)
	}
	wantReason(t, exchange(t, s, patchOf(3, patch("patched", []string{"10.0.0.4"}, nil))), weftv1.Violation_REASON_LIMIT)
	wantElements(t, k, append([]string{"10.0.0.1", "10.0.0.2"}, many...)...)
	// Others go on.
	_, err = c.Apply(ctx, sprawling("sticky", "10.0.0.5"))
	must(t, err)
	if metric(t, reg, "weft_state_errors_total", "record") == 0 || metric(t, reg, "weft_state_errors_total", "durable") == 0 {
		t.Error("nothing is counted")
	}
	if n := len(elementsOf(stored(t, fs.Dir, "patched"))); n != 1 {
		t.Errorf("%d elements are stored: want the fragment as before the patch", n)
	}

	free()
	aggregatortest.Eventually(t, "what was in force is stored", func() bool {
		return len(elementsOf(stored(t, fs.Dir, "patched"))) == 1+len(many)
	})
	aggregatortest.Eventually(t, "patches are taken again", func() bool {
		return exchange(t, s, patchOf(4, patch("patched", []string{"10.0.0.4"}, nil))).GetCommitted() != nil
	})
	// The next commit, whatever it is, brings the record up to date.
	if _, err := os.Stat(database(fs.Dir)); err != nil {
		t.Error(err)
	}
	must(t, d.Stop())
	k = &aggregatortest.Kernel{}
	aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: fs.Dir}})
	wantElements(t, k, append([]string{"10.0.0.1", "10.0.0.2", "10.0.0.4"}, many...)...)
}

// members returns n addresses, sorted as texts.
func members(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("10.1.%d.%d", i/256, i%256))
	}
	slices.Sort(out)
	return out
}

func elementsOf(f *weftv1.Fragment) []*weftv1.Element {
	return f.GetTables()[0].GetSets()[0].GetElements()
}

// sprawling is a blocklist whose record is large.
func sprawling(name string, member string) *weftv1.Fragment {
	f := blocklist(name, member)
	for i := range 1000 {
		f.Tables[0].Sets = append(f.Tables[0].Sets, &weftv1.Set{Name: fmt.Sprintf("%s-%s-%d", name, strings.Repeat("x", 80), i), Type: "ipv4_addr"})
	}
	return f
}

// TestUnwrittenRecordIsNotTrusted fills the disk, so that the record falls behind
// the kernel, and restarts: elements that the old record gives to one fragment may
// be another one's by now.
func TestUnwrittenRecordIsNotTrusted(t *testing.T) {
	fs, ctx, k := newStateFS(t, "1m"), aggregatortest.Context(t), &aggregatortest.Kernel{}
	start := func() (*aggregatortest.Daemon, *logText) {
		cfg, log, _ := observed(aggregator.Config{Kernel: k, StateDir: fs.Dir})
		return aggregatortest.Start(t, aggregatortest.Config{Config: cfg}), log
	}
	d, _ := start()
	_, err := d.Dial(t, "tester").Apply(ctx, blocklist("first", "10.0.0.1"))
	must(t, err)
	free := fs.fill(t)
	second := sprawling("second", "10.0.0.2")
	_, err = d.Dial(t, "tester").Apply(ctx, second)
	must(t, err)
	must(t, d.Stop())
	free()

	d, log := start()
	if !log.has("record is lost") {
		t.Error("nothing is said of the record")
	}
	_, err = d.Dial(t, "tester").Apply(ctx, blocklist("first", "10.0.0.1"))
	must(t, err)
	wantElements(t, k, "10.0.0.1", "10.0.0.2")
	// Both are back: the record is whole again.
	_, err = d.Dial(t, "tester").Apply(ctx, second)
	must(t, err)
	must(t, d.Stop())
	if _, err := os.Stat(database(fs.Dir) + ".outdated"); !os.IsNotExist(err) {
		t.Errorf("the database still has the name of an outdated one: %v", err)
	}
	if n := len(k.Commits()); n != 2 {
		t.Errorf("%d commits: want those before the restart", n)
	}
}

// TestStateDirectoryReadOnly starts daemons while the disk is read-only. (While a
// daemon runs, its open database forbids to make the disk read-only.)
func TestStateDirectoryReadOnly(t *testing.T) {
	fs, ctx, k := newStateFS(t, "256k"), aggregatortest.Context(t), &aggregatortest.Kernel{}
	start := func() *aggregatortest.Daemon {
		return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: fs.Dir, Retry: 1e6}})
	}
	d := start()
	c := d.Dial(t, "tester")
	_, err := c.Apply(ctx, durable(blocklist("kept", "10.0.0.1")))
	must(t, err)
	must(t, d.Stop())
	fs.readOnly(t, true)
	d = start()
	c = d.Dial(t, "tester")
	wantElements(t, k, "10.0.0.1")
	_, err = c.Apply(ctx, durable(blocklist("kept", "10.0.0.2")))
	if r := rejection(t, err, weftv1.Violation_REASON_LIMIT); !strings.Contains(r.Error(), "read-only") {
		t.Errorf("rejection %v does not say why", r)
	}
	wantElements(t, k, "10.0.0.1")
	_, err = c.Apply(ctx, blocklist("sticky", "10.0.0.5"))
	must(t, err)
	if err := d.Aggregator.Stored(); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("stored on a read-only file system: %v", err)
	}
	// It goes from the kernel, and from the disk when that can be written.
	_, err = c.Delete(ctx, "", "kept")
	rejection(t, err, weftv1.Violation_REASON_LIMIT)
	wantElements(t, k, "10.0.0.5")
	must(t, d.Stop())

	// The file is still there, so the fragment is back.
	d = start()
	wantElements(t, k, "10.0.0.1", "10.0.0.5")
	c = d.Dial(t, "tester")
	_, err = c.Apply(ctx, blocklist("sticky", "10.0.0.5"))
	must(t, err)
	wantElements(t, k, "10.0.0.1", "10.0.0.5")
	fs.readOnly(t, false)
	_, err = c.Delete(ctx, "", "kept")
	must(t, err)
	must(t, d.Stop())
	start()
	wantElements(t, k, "10.0.0.5")
}
