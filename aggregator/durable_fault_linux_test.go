package aggregator_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
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
	must(t, err)
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamagedState restarts with a damaged database: the damage is kept and told, and what is in the kernel stays
// and returns to its publisher for nothing. Durable fragments do not survive a reboot until they are stored again.
func TestDamagedState(t *testing.T) {
	dir, k := t.TempDir(), &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	mustApply(t, d.Dial(t, "tester"), durable(blocklist("list", "10.0.0.1")))
	must(t, d.Stop())
	path := database(dir)
	must(t, os.Truncate(path, 100))

	cfg, log, reg := observed(aggregator.Config{Kernel: k, StateDir: dir})
	d = aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	wantElements(t, k, "10.0.0.1")
	if _, err := os.Lstat(path + ".damaged"); err != nil {
		t.Error(err)
	}
	for _, kind := range []string{"record", "durable"} {
		if n := metric(t, reg, "weft_state_errors_total", kind); n != 1 || !log.has(path+".damaged") || !log.has("record is lost") {
			t.Errorf("%v errors of kind %s are counted, log %s", n, kind, log.b.String())
		}
	}
	// Its publisher stores it again.
	mustApply(t, d.Dial(t, "tester"), durable(blocklist("list", "10.0.0.1")))
	if n := len(k.Commits()); n != 1 {
		t.Fatalf("%d commits: want the one before the restart", n)
	}
	must(t, d.Stop())
	k = &aggregatortest.Kernel{}
	aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	wantElements(t, k, "10.0.0.1")
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
		mustApply(t, d.Dial(t, "tester"), blocklist("more", "10.0.0.2"))
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
	mustApply(t, c, sprawling("sticky", "10.0.0.5"))
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
	mustApply(t, d.Dial(t, "tester"), second)
	must(t, d.Stop())
	free()

	d, log := start()
	if !log.has("record is lost") {
		t.Error("nothing is said of the record")
	}
	mustApply(t, d.Dial(t, "tester"), blocklist("first", "10.0.0.1"))
	wantElements(t, k, "10.0.0.1", "10.0.0.2")
	// Both are back: the record is whole again.
	mustApply(t, d.Dial(t, "tester"), second)
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
	mustApply(t, c, blocklist("sticky", "10.0.0.5"))
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
	mustApply(t, c, blocklist("sticky", "10.0.0.5"))
	wantElements(t, k, "10.0.0.1", "10.0.0.5")
	fs.readOnly(t, false)
	_, err = c.Delete(ctx, "", "kept")
	must(t, err)
	must(t, d.Stop())
	start()
	wantElements(t, k, "10.0.0.5")
}
