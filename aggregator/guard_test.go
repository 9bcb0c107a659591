package aggregator_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

// accessFile writes a configuration: what follows its head.
func accessFile(t *testing.T, path, text string) {
	t.Helper()
	// Replaced at once, so that no reader sees half a file.
	must(t, os.WriteFile(path+".new", []byte("apiVersion: weft.dev/v1alpha1\nkind: Configuration\n"+text), 0o600))
	must(t, os.Rename(path+".new", path))
}

// openAccess opens a configuration, in a file that can be changed.
func openAccess(t *testing.T, text string) (*access.Control, string, *prometheus.Registry) {
	t.Helper()
	path, reg := filepath.Join(t.TempDir(), "weft.yaml"), prometheus.NewPedanticRegistry()
	accessFile(t, path, text)
	control, err := access.Open(access.Options{File: path, Registerer: reg})
	must(t, err)
	return control, path, reg
}

// limited starts a daemon with a configuration, in a file that can be changed.
func limited(t *testing.T, k aggregator.Kernel, text string) (*aggregatortest.Daemon, *access.Control, string, *prometheus.Registry) {
	t.Helper()
	control, path, reg := openAccess(t, text)
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Access: control, Registerer: reg}})
	return d, control, path, reg
}

// refusedLimits returns the value of weft_refusals_total.
func refusedLimits(t *testing.T, reg *prometheus.Registry, publisher, limit string) int {
	t.Helper()
	return int(values(t, reg, "weft_refusals_total")[limit+"/"+publisher])
}

// rights is the configuration of most tests here. The publisher's rights hold
// for root too, which acts under its name.
const rights = `
publishers:
- name: cni
  match: {uid: 4242}
  allow:
    tables: [{family: ip, name: demo}]
    hooks: [input]
    chainPriorities: {max: 10}
  priorities: {min: 0}
`

// TestUpdatesAreJudgedByRights has refusals reach the publisher and the metrics. The package admission
// has all rights.
func TestUpdatesAreJudgedByRights(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d, _, path, reg := limited(t, k, rights)
	c, ctx := d.Dial(t, "cni"), aggregatortest.Context(t)
	table := func(name string, change func(*weftv1.Table)) *weftv1.Fragment {
		f := blocklist(name)
		change(f.Tables[0])
		return f
	}
	tests := []struct {
		name, limit, object, text string
		fragment                  *weftv1.Fragment
	}{
		{"table", "tables", "table ip other", "may not use table ip other: allowed tables are ip demo (allow.tables at " + path + ":8)",
			table("f", func(t *weftv1.Table) { t.Name = "other" })},
		{"rule that translates", "nat", "rule ip demo later #2", "may not translate addresses",
			table("f", func(t *weftv1.Table) {
				t.Chains = append(t.Chains, &weftv1.Chain{Name: "later", Rules: []*weftv1.Rule{{Text: "accept"}, {Text: "dnat to 10.0.0.1"}}})
			})},
		{"fragment's priority", "priorities", "", "may not use priority -1: allowed is at least 0",
			&weftv1.Fragment{Name: "f", Priority: -1, Tables: blocklist("f").Tables}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := refusedLimits(t, reg, "cni", tt.limit)
			r := rejection(t, errorOf(c.Apply(ctx, tt.fragment)), weftv1.Violation_REASON_PERMISSION)
			if v := r.Violations[0]; len(r.Violations) != 1 || v.GetObject().Text() != tt.object || !strings.Contains(v.GetMessage(), tt.text) {
				t.Errorf("violations %v", r.Violations)
			}
			same(t, "refusals", refusedLimits(t, reg, "cni", tt.limit), before+1)
		})
	}
	// What is refused comes before what is wrong.
	wrong := table("f", func(t *weftv1.Table) { t.Name = "other"; t.Chains[0].Rules[0].Text = "no rule" })
	r := rejection(t, errorOf(c.Apply(ctx, wrong)), weftv1.Violation_REASON_PERMISSION)
	if len(r.Violations) != 2 || r.Violations[0].GetReason() != weftv1.Violation_REASON_PERMISSION {
		t.Errorf("refused and wrong: %v", r.Violations)
	}
	if len(k.Commits()) != 0 {
		t.Fatal("something refused was committed")
	}
	mustApply(t, c, blocklist("f", "10.0.0.1"))
	// On a stream the update alone is refused; the code is that of the reason.
	s := raw(t, d, "cni")
	wantReason(t, exchange(t, s, snapshotOf(1, tests[0].fragment)), weftv1.Violation_REASON_PERMISSION)
	wantCommitted(t, exchange(t, s, snapshotOf(2, blocklist("f", "10.0.0.2"))))
	denied := patch("f", []string{"10.0.0.3"}, nil)
	denied.Tables[0].Name = "other"
	denied.Tables[0].PutChains = []*weftv1.Chain{{Name: "c"}}
	denied.Tables[0].Elements = nil
	wantReason(t, exchange(t, s, patchOf(3, denied)), weftv1.Violation_REASON_PERMISSION)
	wantCommitted(t, exchange(t, s, patchOf(4, patch("f", []string{"10.0.0.4"}, nil))))
	wantElements(t, k, "10.0.0.2", "10.0.0.4")
}

func TestAnotherNameHasNoLimits(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d, _, _, _ := limited(t, k, rights)
	f := blocklist("f", "10.0.0.1")
	f.Tables[0].Chains[0].Hook, f.Priority = "output", -5
	mustApply(t, d.Dial(t, ""), f)
}

func TestLimitsAreOfAllFragmentsTogether(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d, _, path, reg := limited(t, k, "publishers: [{name: cni, match: {uid: 1}, allow: {tables: [{name: demo}]}, limits: {fragments: 2, rules: 2, elements: 4, bytes: 200}}]\n")
	s := raw(t, d, "cni")
	wantCommitted(t, exchange(t, s, snapshotOf(1, blocklist("a", "10.0.0.1", "10.0.0.2", "10.0.0.3"))))
	wantCommitted(t, exchange(t, s, snapshotOf(2, blocklist("b", "10.0.0.9"))))
	refuse := func(req *weftv1.PublishRequest, limit, text string) {
		t.Helper()
		before := refusedLimits(t, reg, "cni", limit)
		resp := exchange(t, s, req)
		wantReason(t, resp, weftv1.Violation_REASON_LIMIT)
		if got := resp.GetRejected().GetViolations()[0].GetMessage(); !strings.Contains(got, text) || !strings.Contains(got, path+":3") {
			t.Errorf("message %q, want %q", got, text)
		}
		same(t, "refusals of "+limit, refusedLimits(t, reg, "cni", limit), before+1)
	}
	refuse(patchOf(3, patch("b", []string{"10.0.0.8"}, nil)), "elements", "would hold 5 elements, and holds 4: at most 4 are allowed")
	refuse(snapshotOf(4, blocklist("c")), "fragments", "would hold 3 fragments, and holds 2")
	more := blocklist("b", "10.0.0.9")
	more.Tables[0].Chains[0].Rules = append(more.Tables[0].Chains[0].Rules, &weftv1.Rule{Text: "accept"})
	refuse(snapshotOf(5, more), "rules", "would hold 3 rules")
	long := blocklist("b", "10.0.0.9")
	long.Tables[0].Chains[0].Rules[0].Comment = strings.Repeat("x", 120)
	refuse(snapshotOf(6, long), "bytes", "bytes, and holds")
	refuse(snapshotOf(7, blocklist("b", "10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5")), "elements", "sends a snapshot with at least 5 elements")
	// What was refused left nothing behind: there is as much room as before.
	wantCommitted(t, exchange(t, s, patchOf(8, patch("a", []string{"10.0.0.4"}, []string{"10.0.0.1"}))))
	wantCommitted(t, exchange(t, s, snapshotOf(9, &weftv1.Fragment{Name: "b"})))
	wantCommitted(t, exchange(t, s, patchOf(10, patch("a", []string{"10.0.0.5"}, nil))))
	wantElements(t, k, "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5")
}

// TestLimitsCountWhatTheKernelTook: an update that the kernel refuses gives back
// what it counted for, and those in the same commit keep theirs.
func TestLimitsCountWhatTheKernelTook(t *testing.T) {
	k := &aggregatortest.Kernel{Refuse: func(op kernel.Op) (syscall.Errno, string) {
		if add, ok := op.(kernel.AddElements); ok {
			for _, e := range add.Elements {
				if e.Key == "\x0a\x00\x00\xff" {
					return syscall.EOPNOTSUPP, "poison"
				}
			}
		}
		return 0, ""
	}}
	d, _, _, _ := limited(t, k, "publishers: [{name: cni, match: {uid: 1}, allow: {tables: [{name: demo}]}, limits: {elements: 3, fragments: 2}}]\n")
	s := raw(t, d, "cni")
	wantCommitted(t, exchange(t, s, snapshotOf(1, blocklist("a", "10.0.0.1", "10.0.0.2"))))
	for id := uint64(2); id < 6; id++ {
		wantReason(t, exchange(t, s, patchOf(id, patch("a", []string{"10.0.0.255"}, nil))), weftv1.Violation_REASON_KERNEL)
		wantReason(t, exchange(t, s, snapshotOf(id, blocklist("poison", "10.0.0.255"))), weftv1.Violation_REASON_KERNEL)
	}
	wantCommitted(t, exchange(t, s, patchOf(7, patch("a", []string{"10.0.0.3"}, nil))))
	wantReason(t, exchange(t, s, patchOf(8, patch("a", []string{"10.0.0.4"}, nil))), weftv1.Violation_REASON_LIMIT)
	wantCommitted(t, exchange(t, s, snapshotOf(9, blocklist("b"))))
	wantReason(t, exchange(t, s, snapshotOf(10, blocklist("c"))), weftv1.Violation_REASON_LIMIT)
	wantElements(t, k, "10.0.0.1", "10.0.0.2", "10.0.0.3")
}

// TestLimitsOutliveARestart: what was adopted counts before its publisher is
// back.
func TestLimitsOutliveARestart(t *testing.T) {
	k := &aggregatortest.Kernel{}
	control, _, _ := openAccess(t, "publishers: [{name: cni, match: {uid: 1}, allow: {tables: [{name: demo}]}, limits: {elements: 3}}]\n")
	cfg := aggregatortest.Config{Config: aggregator.Config{Kernel: k, Access: control, StateDir: t.TempDir()}}
	d := aggregatortest.Start(t, cfg)
	ctx := aggregatortest.Context(t)
	mustApply(t, d.Dial(t, "cni"), blocklist("a", "10.0.0.1", "10.0.0.2"))
	must(t, d.Stop())
	d = aggregatortest.Start(t, cfg)
	c := d.Dial(t, "cni")
	rejection(t, errorOf(c.Apply(ctx, blocklist("b", "10.0.0.3", "10.0.0.4"))), weftv1.Violation_REASON_LIMIT)
	mustApply(t, c, blocklist("a", "10.0.0.1", "10.0.0.2", "10.0.0.3"))
}

// TestNewRightsHoldForTheNextUpdate of a session that stays.
func TestNewRightsHoldForTheNextUpdate(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d, control, path, _ := limited(t, k, "publishers: [{name: cni, match: {uid: 1}, allow: {tables: [{name: demo}]}}]\n")
	s := raw(t, d, "cni")
	wantCommitted(t, exchange(t, s, snapshotOf(1, blocklist("a", "10.0.0.1", "10.0.0.2", "10.0.0.3"))))
	reload := func(text string) {
		t.Helper()
		accessFile(t, path, text)
		must(t, control.Reload())
	}
	reload("publishers: [{name: cni, match: {uid: 1}, limits: {elements: 1}}]\n")
	wantReason(t, exchange(t, s, patchOf(2, patch("a", []string{"10.0.0.4"}, nil))), weftv1.Violation_REASON_PERMISSION)
	reload("publishers: [{name: cni, match: {uid: 1}, allow: {tables: [{name: demo}]}, limits: {elements: 1}}]\n")
	wantReason(t, exchange(t, s, patchOf(3, patch("a", []string{"10.0.0.4"}, nil))), weftv1.Violation_REASON_LIMIT)
	// What is there stays, may be said again, and may become less.
	wantElements(t, k, "10.0.0.1", "10.0.0.2", "10.0.0.3")
	wantCommitted(t, exchange(t, s, snapshotOf(4, blocklist("a", "10.0.0.1", "10.0.0.2", "10.0.0.3"))))
	wantCommitted(t, exchange(t, s, patchOf(5, patch("a", nil, []string{"10.0.0.1"}))))
	wantElements(t, k, "10.0.0.2", "10.0.0.3")
	reload("")
	wantCommitted(t, exchange(t, s, patchOf(6, patch("a", []string{"10.0.0.5"}, nil))))
}

// TestLargeSnapshotIsRefusedBeforeItIsUnpacked: the text of one that exceeds its
// publisher's bytes is not parsed.
func TestLargeSnapshotIsRefusedBeforeItIsUnpacked(t *testing.T) {
	d, _, _, _ := limited(t, &aggregatortest.Kernel{}, "publishers: [{name: cni, match: {uid: 1}, limits: {bytes: 1Ki}}]\n")
	_, err := d.Dial(t, "cni").Apply(aggregatortest.Context(t), &weftv1.Fragment{Name: "f", Nft: strings.Repeat("not a rule\n", 20_000)})
	if r := rejection(t, err, weftv1.Violation_REASON_LIMIT); len(r.Violations) != 1 {
		t.Errorf("violations %v", r.Violations)
	}
}

func TestStreamLimit(t *testing.T) {
	d, control, path, reg := limited(t, &aggregatortest.Kernel{}, "publishers: [{name: cni, match: {uid: 1}, allow: {tables: [{name: demo}]}, limits: {streams: 2}}]\n")
	first, second := raw(t, d, "cni"), raw(t, d, "cni")
	wantCommitted(t, exchange(t, first, snapshotOf(1, blocklist("a"))))
	wantCommitted(t, exchange(t, second, snapshotOf(1, blocklist("b"))))
	_, err := raw(t, d, "cni").Recv()
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), fmt.Sprintf("would have 3 open streams: at most 2 are allowed: close one first (limits.streams at %s:3)", path)) {
		t.Fatalf("third stream: %v", err)
	}
	same(t, "refusals", refusedLimits(t, reg, "cni", "streams"), 1)
	// One that ends makes room.
	must(t, second.CloseSend())
	aggregatortest.Eventually(t, "there is room for a stream", func() bool {
		s := raw(t, d, "cni")
		if err := s.Send(snapshotOf(1, blocklist("c"))); err != nil {
			return false
		}
		_, err := s.Recv()
		return err == nil
	})
	// A lower limit ends none.
	accessFile(t, path, "publishers: [{name: cni, match: {uid: 1}, allow: {tables: [{name: demo}]}, limits: {streams: 1}}]\n")
	must(t, control.Reload())
	wantCommitted(t, exchange(t, first, snapshotOf(2, blocklist("a", "10.0.0.1"))))
}

// TestConfiguredNamesAreThoseOfTheWire: every name that the configuration takes
// can be sent, and the other way round.
func TestConfiguredNamesAreThoseOfTheWire(t *testing.T) {
	for _, name := range []string{
		"a", "0", "a.b_c-d", "a" + strings.Repeat("b", 62), "a" + strings.Repeat("b", 63), "A", "aB", "-a", ".a", "_a", "a/b", "a b", "ä", "a\x00", "a:",
	} {
		_, err := access.Parse("f", fmt.Appendf(nil, "apiVersion: weft.dev/v1alpha1\nkind: Configuration\npublishers: [{name: %q, match: {uid: 1}}]\n", name), access.System())
		if want := admission.CheckIdentity("publisher", name); (err == nil) != (want == nil) {
			t.Errorf("name %q: in a configuration %v, on the wire %v", name, err, want)
		}
	}
}

// several returns so many elements.
func several(network, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("10.%d.%d.%d", network, i/250, i%250+1))
	}
	return out
}

// TestUnconfirmedIsAccounted has a publisher that is limited in everything keep earlier content: it counts as what the
// publisher holds until it is confirmed, and is on the disk no longer. An update can be taken back although its
// publisher has used what it left of other limits.
func TestUnconfirmedIsAccounted(t *testing.T) {
	control, _, _ := openAccess(t, "publishers: [{name: cni, match: {uid: 1}, allow: {tables: [{name: demo}]}, limits: {elements: 400, bytes: 10Ki}}]\n")
	dir := t.TempDir()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Access: control, StateDir: dir}})
	ctx, c := aggregatortest.Context(t), d.Dial(t, "cni")
	bytes := func() uint64 {
		t.Helper()
		list, err := c.ListPublishers(ctx)
		must(t, err)
		for _, l := range list.GetPublishers()[0].GetLimits() {
			if l.GetName() == "bytes" {
				return l.GetUsed()
			}
		}
		t.Fatal("no limit of bytes")
		return 0
	}
	kept := func() (n uint64) {
		t.Helper()
		copied := t.TempDir()
		must(t, os.CopyFS(copied, os.DirFS(dir)))
		s := store.New(store.Config{Path: copied, Retry: time.Second, Logger: slog.New(slog.DiscardHandler), Failed: func(string) {}})
		s.Register(store.Part{Bucket: "unconfirmed", Single: true})
		must(t, s.Load())
		must(t, s.View(func(tx *store.Tx) error {
			b, err := tx.Bucket("unconfirmed")
			if err == nil {
				n = uint64(b.Size()) //nolint:gosec // a size
			}
			return err
		}))
		must(t, s.Close())
		return n
	}
	mustApply(t, c, blocklist("a", several(0, 300)...))
	alone := bytes()
	if _, _, err := c.ApplyUnconfirmed(ctx, blocklist("a", several(1, 10)...), time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := bytes() - alone*10/300; got < kept()-100 || kept() < 300 {
		t.Errorf("the earlier content counts as %d bytes, and is %d on the disk", got, kept())
	}
	// Its elements are free for others. What it needs on the disk is not.
	mustApply(t, c, blocklist("b", several(2, 380)...))

	_, _, err := c.ApplyUnconfirmed(ctx, blocklist("b", several(2, 381)...), time.Hour)
	rejection(t, err, weftv1.Violation_REASON_LIMIT)
	if kept() > 6<<10 {
		t.Errorf("what was refused is on the disk")
	}
	// The update is taken back, although now there are more elements than allowed.
	must(t, errorOf(c.Confirm(ctx, "", "a", true)))
	got, err := c.Get(ctx, "", "a")
	if err != nil || got.GetStatus().GetElements() != 300 || got.GetStatus().GetRevertTime().IsValid() {
		t.Fatalf("after taking it back: %v, %v", got.GetStatus(), err)
	}
	if kept() != 0 {
		t.Errorf("%d bytes are left on the disk", kept())
	}
	rejection(t, errorOf(c.Apply(ctx, blocklist("a", several(3, 301)...))), weftv1.Violation_REASON_LIMIT)
}
