package aggregator_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
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

// limited starts a daemon with a configuration, in a file that can be changed.
func limited(t *testing.T, k aggregator.Kernel, text string) (*aggregatortest.Daemon, *access.Control, string, *prometheus.Registry) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weft.yaml")
	accessFile(t, path, text)
	reg := prometheus.NewPedanticRegistry()
	control, err := access.Open(access.Options{File: path, Registerer: reg})
	must(t, err)
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Access: control, Registerer: reg}})
	return d, control, path, reg
}

// refusedLimits returns the value of weft_refusals_total.
func refusedLimits(t *testing.T, reg *prometheus.Registry, publisher, limit string) int {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() != "weft_refusals_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["publisher"] == publisher && labels["limit"] == limit {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	return 0
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

func TestUpdatesAreJudgedByRights(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d, _, path, reg := limited(t, k, rights)
	c, ctx := d.Dial(t, "cni"), aggregatortest.Context(t)
	table := func(name string, change func(*weftv1.Table)) *weftv1.Fragment {
		f := blocklist(name)
		change(f.Tables[0])
		return f
	}
	chain := func(change func(*weftv1.Chain)) *weftv1.Fragment {
		return table("f", func(t *weftv1.Table) { change(t.Chains[0]) })
	}
	tests := []struct {
		name, limit, object, text string
		fragment                  *weftv1.Fragment
	}{
		{"table", "tables", "table ip other", "may not use table ip other: allowed tables are ip demo (allow.tables at " + path + ":8)",
			table("f", func(t *weftv1.Table) { t.Name = "other" })},
		{"family of the table", "tables", "table ip6 demo", "may not use table ip6 demo",
			table("f", func(t *weftv1.Table) { t.Family, t.Sets, t.Chains = "ip6", nil, nil })},
		{"nft text", "tables", "table inet demo", "may not use table inet demo", &weftv1.Fragment{Name: "f", Nft: "table inet demo { chain c { accept; }; }"}},
		{"hook", "hooks", "chain ip demo input", "may not use hook output", chain(func(c *weftv1.Chain) { c.Hook = "output" })},
		{"chain priority", "chainPriorities", "chain ip demo input", "may not use chain priority 300: allowed is at most 10",
			chain(func(c *weftv1.Chain) { c.Priority = "300" })},
		{"chain of type nat", "nat", "chain ip demo input", "base chains of type nat: nat is not allowed (no allow.nat at " + path + ":5)",
			chain(func(c *weftv1.Chain) { c.Type = "nat" })},
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
			_, err := c.Apply(ctx, tt.fragment)
			var rejected *client.RejectedError
			if !errors.As(err, &rejected) || len(rejected.Violations) != 1 {
				t.Fatalf("error %v", err)
			}
			v := rejected.Violations[0]
			if v.GetReason() != weftv1.Violation_REASON_PERMISSION || v.GetObject().Text() != tt.object || !strings.Contains(v.GetMessage(), tt.text) {
				t.Errorf("violation %v", v)
			}
			if got := refusedLimits(t, reg, "cni", tt.limit); got != before+1 {
				t.Errorf("%d refusals counted, and %d before", got, before)
			}
		})
	}
	// What is refused comes before what is wrong.
	wrong := table("f", func(t *weftv1.Table) { t.Name = "other"; t.Chains[0].Rules[0].Text = "no rule" })
	_, err := c.Apply(ctx, wrong)
	var rejected *client.RejectedError
	if !errors.As(err, &rejected) || len(rejected.Violations) != 2 || rejected.Violations[0].GetReason() != weftv1.Violation_REASON_PERMISSION {
		t.Errorf("refused and wrong: %v", err)
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
		if got := refusedLimits(t, reg, "cni", limit); got != before+1 {
			t.Errorf("%d refusals of %s, want %d", got, limit, before+1)
		}
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
	path := filepath.Join(t.TempDir(), "weft.yaml")
	accessFile(t, path, "publishers: [{name: cni, match: {uid: 1}, allow: {tables: [{name: demo}]}, limits: {elements: 3}}]\n")
	control, err := access.Open(access.Options{File: path})
	must(t, err)
	cfg := aggregatortest.Config{Config: aggregator.Config{Kernel: k, Access: control, StateDir: t.TempDir()}}
	d := aggregatortest.Start(t, cfg)
	ctx := aggregatortest.Context(t)
	mustApply(t, d.Dial(t, "cni"), blocklist("a", "10.0.0.1", "10.0.0.2"))
	must(t, d.Stop())
	d = aggregatortest.Start(t, cfg)
	c := d.Dial(t, "cni")
	var rejected *client.RejectedError
	if _, err := c.Apply(ctx, blocklist("b", "10.0.0.3", "10.0.0.4")); !errors.As(err, &rejected) || !rejected.Has(weftv1.Violation_REASON_LIMIT) {
		t.Fatalf("more than the limit after a restart: %v", err)
	}
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
	var rejected *client.RejectedError
	if !errors.As(err, &rejected) || len(rejected.Violations) != 1 || !rejected.Has(weftv1.Violation_REASON_LIMIT) {
		t.Errorf("error %v", err)
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
	if got := refusedLimits(t, reg, "cni", "streams"); got != 1 {
		t.Errorf("%d refusals", got)
	}
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
