package aggregator_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

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
		if n := metric(t, reg, "weft_state_errors_total", kind); n != 1 || !strings.Contains(log.all(), path+".damaged") || !strings.Contains(log.all(), "record is lost") {
			t.Errorf("%v errors of kind %s are counted, log %s", n, kind, log.all())
		}
	}
	// Its publisher stores it again.
	mustApply(t, d.Dial(t, "tester"), durable(blocklist("list", "10.0.0.1")))
	same(t, "commits, with the one before the restart", len(k.Commits()), 1)
	must(t, d.Stop())
	k = &aggregatortest.Kernel{}
	aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	wantElements(t, k, "10.0.0.1")
}

// TestLostRecordIsNotMadeUp restarts twice after a record was lost: the record
// that the second run wrote must not pass for a whole one, or the return of all
// who are in it would sweep away what others own.
func TestLostRecordIsNotMadeUp(t *testing.T) {
	dir, k := t.TempDir(), &aggregatortest.Kernel{}
	start := func() *aggregatortest.Daemon {
		return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	}
	d := start()
	c := d.Dial(t, "tester")
	// The one who does not return has only elements, which name no fragment.
	away := blocklist("away", "10.0.0.7")
	away.Tables[0].Chains = nil
	away.Tables[0].Sets[0].Name = "others"
	mustApply(t, c, away, blocklist("list", "10.0.0.1"))
	must(t, d.Stop())
	must(t, os.Remove(database(dir)))
	for range 2 {
		d = start()
		mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.1"))
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
	mustApply(t, c, durable(blocklist("kept", "10.0.0.1")))
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
	same(t, "stored elements, as before the patch", len(elementsOf(stored(t, fs.Dir, "patched"))), 1)

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
	fs, k := newStateFS(t, "1m"), &aggregatortest.Kernel{}
	start := func() (*aggregatortest.Daemon, *logText) {
		cfg, log, _ := observed(aggregator.Config{Kernel: k, StateDir: fs.Dir})
		return aggregatortest.Start(t, aggregatortest.Config{Config: cfg}), log
	}
	d, _ := start()
	mustApply(t, d.Dial(t, "tester"), blocklist("first", "10.0.0.1"))
	free := fs.fill(t)
	second := sprawling("second", "10.0.0.2")
	mustApply(t, d.Dial(t, "tester"), second)
	must(t, d.Stop())
	free()

	d, log := start()
	if !strings.Contains(log.all(), "record is lost") {
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
	same(t, "commits, with those before the restart", len(k.Commits()), 2)
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
	mustApply(t, c, durable(blocklist("kept", "10.0.0.1")))
	must(t, d.Stop())
	fs.readOnly(t, true)
	d = start()
	c = d.Dial(t, "tester")
	wantElements(t, k, "10.0.0.1")
	_, err := c.Apply(ctx, durable(blocklist("kept", "10.0.0.2")))
	if r := rejection(t, err, weftv1.Violation_REASON_LIMIT); !strings.Contains(r.Error(), "read-only") {
		t.Errorf("rejection %v does not say why", r)
	}
	wantElements(t, k, "10.0.0.1")
	mustApply(t, c, blocklist("sticky", "10.0.0.5"))
	if err := d.Aggregator.Stored(); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("stored on a read-only file system: %v", err)
	}
	// It goes from the kernel, and from the disk when that can be written.
	rejection(t, errorOf(c.Delete(ctx, "", "kept")), weftv1.Violation_REASON_LIMIT)
	wantElements(t, k, "10.0.0.5")
	must(t, d.Stop())

	// The file is still there, so the fragment is back.
	d = start()
	wantElements(t, k, "10.0.0.1", "10.0.0.5")
	c = d.Dial(t, "tester")
	mustApply(t, c, blocklist("sticky", "10.0.0.5"))
	wantElements(t, k, "10.0.0.1", "10.0.0.5")
	fs.readOnly(t, false)
	must(t, errorOf(c.Delete(ctx, "", "kept")))
	must(t, d.Stop())
	start()
	wantElements(t, k, "10.0.0.5")
}

// stateFS is a small file system of a test's own, mounted nowhere: its files are
// reached through a file descriptor.
type stateFS struct {
	fd  int
	Dir string
}

// newStateFS makes a file system with room for size bytes.
func newStateFS(t *testing.T, size string) *stateFS {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces)
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	must(t, err)
	defer func() { _ = unix.Close(fs) }()
	must(t, errors.Join(unix.FsconfigSetString(fs, "size", size), unix.FsconfigSetString(fs, "mode", "700"), unix.FsconfigCreate(fs)))
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &stateFS{fd, fmt.Sprintf("/proc/self/fd/%d", fd)}
}

// readOnly makes the file system read-only, or writable again.
func (s *stateFS) readOnly(t *testing.T, on bool) {
	t.Helper()
	attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if on {
		attr = unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	}
	must(t, unix.MountSetattr(s.fd, "", unix.AT_EMPTY_PATH, &attr))
}

// fill takes all room that is left, until the result is called.
func (s *stateFS) fill(t *testing.T) (free func()) {
	t.Helper()
	path := filepath.Join(s.Dir, "filler")
	f, err := os.Create(path)
	must(t, err)
	page := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("fill: %v", err)
	}
	_ = f.Close()
	return func() {
		must(t, os.Remove(path))
	}
}

// repairTime is how soon foreign damage must be repaired.
const repairTime = 30 * time.Second

// rich is a fragment with something of every kind.
func rich() *weftv1.Fragment {
	f := blocklist("rich", "10.0.0.1", "10.0.0.2")
	t := f.Tables[0]
	t.Sets = append(t.Sets, &weftv1.Set{Name: "nets", Type: "ipv4_addr", Flags: []string{"interval"}, Elements: elements("10.1.0.0/16", "10.2.0.0/24")})
	t.Maps = []*weftv1.Set{{Name: "ways", Type: "inet_service : verdict", Elements: []*weftv1.Element{{Key: "80", Value: "goto web"}, {Key: "22", Value: "drop"}}}}
	t.Chains[0].Rules = append(t.Chains[0].Rules,
		&weftv1.Rule{Text: "ip saddr @nets counter", Comment: "nets"},
		&weftv1.Rule{Text: "tcp dport vmap @ways"})
	t.Chains = append(t.Chains, &weftv1.Chain{Name: "web", Rules: []*weftv1.Rule{{Text: "ip ttl 1 drop"}, {Text: "accept", Comment: "the end"}}})
	return f
}

// damage is what a foreign process does to table ip demo, as input of nft. HANDLE
// is the handle of the rule with the comment "nets".
var damage = []string{
	"flush ruleset",
	"delete table ip demo",
	"delete table ip demo; add table ip demo2; delete table ip demo2",
	"flush table ip demo",
	"flush chain ip demo web",
	"delete rule ip demo input handle HANDLE",
	"insert rule ip demo input accept",
	"add rule ip demo web counter comment \"foreign\"",
	"replace rule ip demo input handle HANDLE drop",
	"delete element ip demo blocked { 10.0.0.1 }",
	"add element ip demo blocked { 10.6.6.6 }",
	"flush set ip demo blocked",
	"flush map ip demo ways",
	"delete element ip demo nets { 10.1.0.0/16 }",
	"add element ip demo nets { 10.9.0.0/16 }",
	"delete element ip demo ways { 80 }; add element ip demo ways { 80 : accept }",
	"add chain ip demo theirs { type filter hook forward priority 5; policy drop; }",
	"add chain ip demo theirs; add rule ip demo theirs drop; add rule ip demo web jump theirs",
	"add chain ip demo input { policy drop; }",
	"add set ip demo odd { typeof ip saddr . meta mark; flags dynamic,timeout; timeout 1h; counter; }",
	"add map ip demo odd { type ifname . inet_proto : mark; flags interval; }; add rule ip demo web ip saddr @blocked meta mark set 7",
	"add counter ip demo total; add rule ip demo web counter name total",
}

var ruleHandle = regexp.MustCompile(`# handle (\d+)`)

// TestForeignDamageIsRepairedWithinASecond runs as on kernels without ownership,
// and measures from the end of the foreign command to the end of the repair.
//
// Behaviour: 145.
func TestForeignDamageIsRepairedWithinASecond(t *testing.T) {
	cfg, _, reg := observed(aggregator.Config{})
	ns, d, _ := onKernel(t, cfg, true)
	c := d.Dial(t, "tester")
	mustApply(t, c, rich())
	want := ns.ListRuleset(t)
	events := watch(t, d)
	var worst time.Duration
	for i, text := range damage {
		handle := ruleHandle.FindStringSubmatch(ruleLine(t, ns, `comment "nets"`))[1]
		text = strings.ReplaceAll(text, "HANDLE", handle)
		ns.Nft(t, text)
		ended := time.Now()
		aggregatortest.Eventually(t, "what this did is repaired: "+text, func() bool {
			return metric(t, reg, "weft_drift_repairs_total", "") > float64(i)
		})
		told := events.nth(t, i, func(e *weftv1.WatchResponse) bool { return e.GetDrift().GetRepaired() != nil })
		took := told.GetTime().AsTime().Sub(ended)
		worst = max(worst, took)
		if took > repairTime {
			t.Errorf("repaired after %v: %s", took, text)
		}
		if reason := told.GetDrift().GetReason(); !strings.Contains(reason, "table ip demo was") || !strings.Contains(reason, "(nft)") {
			t.Errorf("reason %q does not say who did what", reason)
		}
		same(t, "after "+text, ns.ListRuleset(t), want)
	}
	t.Logf("%d kinds of damage, the slowest repair was told %v after the command's end", len(damage), worst)
}

// TestDamageWhileDown does the same while no weft runs: the publisher's return
// brings back what is missing, and touches nothing else.
func TestDamageWhileDown(t *testing.T) {
	for _, noOwner := range []bool{false, true} {
		t.Run(fmt.Sprintf("noOwner=%v", noOwner), func(t *testing.T) {
			dir, ctx := t.TempDir(), aggregatortest.Context(t)
			ns, d, conn := onKernel(t, aggregator.Config{StateDir: dir}, noOwner)
			mustApply(t, d.Dial(t, "tester"), rich())
			want := ns.ListRuleset(t)
			for _, text := range damage {
				must(t, conn.Close()) // as kill -9 does
				handle := ruleHandle.FindStringSubmatch(ruleLine(t, ns, `comment "nets"`))[1]
				end := ruleLine(t, ns, `comment "the end"`)
				text = strings.ReplaceAll(text, "HANDLE", handle)
				ns.Nft(t, text)
				spared := strings.Contains(ns.Run(t, "nft", "-a", "list", "ruleset"), end)

				_ = d.Stop()
				d, conn = startKernel(t, ns, aggregator.Config{StateDir: dir}, noOwner)
				must(t, errorOf(d.Dial(t, "tester").Apply(ctx, rich())))
				aggregatortest.Eventually(t, "the ruleset is as before "+text, func() bool { return ns.ListRuleset(t) == want })
				if after := ruleLine(t, ns, `comment "the end"`); spared && after != end {
					t.Errorf("%s: untouched rule %s became %s", text, end, after)
				}
			}
		})
	}
}

// TestTakenTableName has another program take the name of a table: that table
// waits, its publisher is told, and no other publisher notices.
func TestTakenTableName(t *testing.T) {
	ctx := aggregatortest.Context(t)
	cfg, _, reg := observed(aggregator.Config{Retry: 200 * time.Millisecond})
	ns, d, _ := onKernel(t, cfg, true)
	c := d.Dial(t, "tester")
	other := blocklist("other", "10.3.0.1")
	other.Tables[0].Name = "other"
	mustApply(t, c, rich(), other)
	want := ns.ListRuleset(t)
	events := watch(t, d)
	ns.Nft(t, "delete table ip demo\nadd table ip demo\nadd chain ip demo theirs\nflush table ip other")
	events.until(t, "watchers know", func(e *weftv1.WatchResponse) bool {
		return strings.Contains(e.GetDrift().GetReason(), "not repaired yet") && strings.Contains(e.GetDrift().GetReason(), "was not created by weft")
	})
	same(t, "tables that are not repaired", metric(t, reg, "weft_unrepaired_tables", ""), 1)
	if err := d.Aggregator.Drift(); err == nil || !strings.Contains(err.Error(), "not repaired yet") {
		t.Errorf("drift: %v", err)
	}
	// The damage of the other table is repaired, and its updates are committed.
	began := time.Now()
	other.Tables[0].Sets[0].Elements = elements("10.3.0.1", "10.3.0.2")
	mustApply(t, c, other)
	t.Logf("the other publisher waited %v", time.Since(began))
	if text := ns.Run(t, "nft", "list", "table", "ip", "other"); !strings.Contains(text, "10.3.0.2") || !strings.Contains(text, "saddr @blocked") {
		t.Fatalf("table of the other publisher:\n%s", text)
	}
	more := rich()
	more.Tables[0].Sets[0].Elements = elements("10.0.0.1", "10.0.0.9")
	rejection(t, errorOf(c.Apply(ctx, more)), weftv1.Violation_REASON_KERNEL)
	if text := ns.Run(t, "nft", "list", "table", "ip", "demo"); !strings.Contains(text, "theirs") || strings.Contains(text, "blocked") {
		t.Fatalf("the foreign table:\n%s", text)
	}

	ns.Nft(t, "delete table ip demo")
	aggregatortest.Eventually(t, "the table is back", func() bool { return metric(t, reg, "weft_unrepaired_tables", "") == 0 })
	if got := ns.Run(t, "nft", "list", "table", "ip", "demo"); !strings.Contains(want, strings.TrimSpace(got)) {
		t.Fatalf("table:\n%s\nwant it from:\n%s", got, want)
	}
	mustApply(t, c, more)
}
