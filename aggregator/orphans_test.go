package aggregator_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestOrphans takes a publisher and a right out of the configuration, with a reboot and
// without, and gives them back.
func TestOrphans(t *testing.T) {
	const head, gone, allowed = "apiVersion: weft.dev/v1alpha1\nkind: Configuration\npublishers:\n", "- {name: gone, match: {uid: 1}, allow: {tables: [{name: '*'}]}}\n", "- {name: narrow, match: {uid: 2}, allow: {tables: [{name: '*'}]}}\n"
	const narrowed = "- {name: narrow, match: {uid: 2}, limits: {rules: 1, elements: 1}}\n"
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "weft.yaml")
	ctx := aggregatortest.Context(t)
	start := func(k *aggregatortest.Kernel, config string) *aggregatortest.Daemon {
		t.Helper()
		must(t, os.WriteFile(file, []byte(head+config), 0o600))
		control, err := access.Open(access.Options{File: file})
		must(t, err)
		return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Access: control}})
	}
	table := func(name string, elements ...string) *weftv1.Fragment {
		f := blocklist("f", elements...)
		f.Tables[0].Name, f.Lifetime = name, weftv1.Lifetime_LIFETIME_DURABLE
		return f
	}
	states := func(d *aggregatortest.Daemon) map[string]weftv1.FragmentStatus_State {
		all := make(map[string]weftv1.FragmentStatus_State)
		list, _ := d.Aggregator.List()
		for _, f := range list {
			all[f.GetFragment().GetPublisher()] = f.GetState()
			if f.GetState() == weftv1.FragmentStatus_STATE_ORPHANED && (len(f.GetViolations()) == 0 || !strings.Contains(f.GetViolations()[0].GetMessage(), file)) {
				t.Errorf("orphan %v does not say why", f)
			}
		}
		return all
	}
	const committed, orphaned = weftv1.FragmentStatus_STATE_COMMITTED, weftv1.FragmentStatus_STATE_ORPHANED
	want := func(d *aggregatortest.Daemon, gone, narrow weftv1.FragmentStatus_State) {
		t.Helper()
		// An administrator under another name was never in the configuration.
		if got := states(d); got["gone"] != gone || got["narrow"] != narrow || got["operator"] != committed {
			t.Errorf("fragments are %v: want gone %v, narrow %v, operator %v", got, gone, narrow, committed)
		}
	}
	k := &aggregatortest.Kernel{}
	d := start(k, gone+allowed)
	for publisher, f := range map[string]*weftv1.Fragment{"gone": table("gone", "10.0.0.1"), "narrow": table("other", "10.0.0.2", "10.0.0.3"), "operator": table("operator", "10.0.0.4")} {
		applyAs(t, d, publisher, f)
	}
	want(d, committed, committed)
	all := k.String()
	for name, kernel := range map[string]*aggregatortest.Kernel{"restart": k, "reboot": {}} {
		must(t, d.Stop())
		d = start(kernel, narrowed)
		want(d, orphaned, orphaned)
		if text := kernel.String(); strings.Contains(text, "10.0.0.1") || strings.Contains(text, "other") || !strings.Contains(text, "operator") {
			t.Errorf("after a %s the kernel has\n%s", name, text)
		}
		k = kernel
	}
	// They come back with what they need, whatever the limits.
	must(t, d.Stop())
	d = start(k, gone+strings.Replace(allowed, "}]}}", "}]}, limits: {elements: 1}}", 1))
	want(d, committed, committed)
	if got := k.String(); got != all {
		t.Errorf("the kernel has\n%s\nwant\n%s", got, all)
	}
	// Deleted, and sent again with a shorter life: neither comes back.
	must(t, d.Stop())
	d = start(k, "- {name: unused, match: {uid: 9}}\n")
	want(d, orphaned, orphaned)
	if _, err := d.Aggregator.Delete(ctx, "gone", "f"); err != nil {
		t.Error(err)
	}
	sticky := table("other", "10.0.0.9")
	sticky.Lifetime = weftv1.Lifetime_LIFETIME_STICKY
	if _, err := d.Aggregator.Apply(ctx, "narrow", sticky); err != nil {
		t.Error(err)
	}
	want(d, 0, committed)
	must(t, d.Stop())
	d = start(&aggregatortest.Kernel{}, gone+allowed)
	want(d, 0, 0)
}

// TestOrphansByClass restores fragments after the limits of classes were lowered: the bits of
// the mark hold for each rule, and the log rate for the rules of all fragments together.
func TestOrphansByClass(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "weft.yaml")
	ctx := aggregatortest.Context(t)
	start := func(k *aggregatortest.Kernel, allow string) *aggregatortest.Daemon {
		t.Helper()
		text := "apiVersion: weft.dev/v1alpha1\nkind: Configuration\npublishers:\n- name: cni\n  match: {uid: 1}\n  allow: {" + allow + "}\n"
		must(t, os.WriteFile(file, []byte(text), 0o600))
		control, err := access.Open(access.Options{File: file})
		must(t, err)
		return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Access: control}})
	}
	const logs = "limit rate 4/second burst 1 packets log"
	fragments := map[string]string{"log1": logs, "log2": logs, "mark": "meta mark set meta mark & 0xfffffeff | 0x100", "plain": "accept"}
	k := &aggregatortest.Kernel{}
	d := start(k, "log: 10, marks: 0xff00")
	for name, rule := range fragments {
		if _, err := d.Aggregator.Apply(ctx, "cni", &weftv1.Fragment{
			Name: name, Lifetime: weftv1.Lifetime_LIFETIME_DURABLE,
			Tables: []*weftv1.Table{{Family: "ip", Name: "cni", Chains: []*weftv1.Chain{{Name: "c-" + name, Rules: []*weftv1.Rule{{Text: rule}}}}}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		allow, orphans, why string
		reboot              bool
	}{
		{"log: 5, marks: 0xff00", "log2", "publisher cni would log up to 8.1 packets a second, and logs 4.1: at most 5 are allowed", false},
		{"log: 5, marks: 0xff00", "log2", "publisher cni would log up to 8.1 packets a second, and logs 4.1: at most 5 are allowed", true},
		{"log: 10, marks: 0xf000", "mark", "publisher cni may not change the bits 0x00000100 of the packet mark", true},
		{"log: 10, marks: 0xff00", "", "", false},
		{"log: unlimited", "mark", "publisher cni may not change the packet mark: marks is not allowed", false},
		{"marks: 0xff00", "log1 log2", "publisher cni may not log packets: log is not allowed", true},
	} {
		must(t, d.Stop())
		if tt.reboot {
			k = &aggregatortest.Kernel{}
		}
		d = start(k, tt.allow)
		list, _ := d.Aggregator.List()
		if len(list) != len(fragments) {
			t.Errorf("%s: %d fragments are listed", tt.allow, len(list))
		}
		var orphans []string
		for _, f := range list {
			name := f.GetFragment().GetName()
			orphaned := f.GetState() == weftv1.FragmentStatus_STATE_ORPHANED
			if orphaned == strings.Contains(k.String(), "c-"+name) {
				t.Errorf("%s: fragment %s is orphaned: %t. The kernel has\n%s", tt.allow, name, orphaned, k)
			}
			if !orphaned {
				continue
			}
			orphans = append(orphans, name)
			if got := f.GetViolations()[0].GetMessage(); !strings.Contains(got, tt.why) {
				t.Errorf("%s: fragment %s is orphaned: %s", tt.allow, name, got)
			}
		}
		slices.Sort(orphans)
		if got := strings.Join(orphans, " "); got != tt.orphans {
			t.Errorf("%s: orphans are %s, want %s", tt.allow, got, tt.orphans)
		}
	}
}
