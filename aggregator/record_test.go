package aggregator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
)

func inputChain() *weftv1.Chain {
	return &weftv1.Chain{Name: "input", Type: "filter", Hook: "input", Priority: "filter", Policy: "drop", Rules: []*weftv1.Rule{{Text: "iif lo accept"}}}
}

// TestRefusedPatchLeavesNoTrace has a patch with a wrong rule delete a base chain.
// The chain and its declaration must be in the content that Get returns, and in
// what a reboot restores, after a later patch was committed.
func TestRefusedPatchLeavesNoTrace(t *testing.T) {
	dir := t.TempDir()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir}})
	table := func() *weftv1.TablePatch { return &weftv1.TablePatch{Family: "ip", Name: "demo"} }
	s := raw(t, d, "tester")
	wantCommitted(t, exchange(t, s, snapshotOf(1, &weftv1.Fragment{
		Name: "firewall", Lifetime: weftv1.Lifetime_LIFETIME_DURABLE,
		Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Chains: []*weftv1.Chain{inputChain()}}},
	})))
	wrong := table()
	wrong.DeleteChains = []string{"input"}
	wrong.PutChains = []*weftv1.Chain{{Name: "x", Rules: []*weftv1.Rule{{Text: "jump nowhere"}}}}
	wantReason(t, exchange(t, s, patchOf(2, &weftv1.Patch{Fragment: "firewall", Tables: []*weftv1.TablePatch{wrong}})), weftv1.Violation_REASON_REFERENCE)
	right := table()
	right.PutChains = []*weftv1.Chain{{Name: "y", Rules: []*weftv1.Rule{{Text: "accept"}}}}
	wantCommitted(t, exchange(t, s, patchOf(3, &weftv1.Patch{Fragment: "firewall", Tables: []*weftv1.TablePatch{right}})))
	wantInput := func(what string, d *aggregatortest.Daemon) {
		t.Helper()
		got, err := d.Dial(t, "tester").Get(aggregatortest.Context(t), "", "firewall")
		must(t, err)
		chains := got.GetFragment().GetTables()[0].GetChains()
		if len(chains) != 2 || !proto.Equal(chains[0], inputChain()) {
			t.Errorf("%s: chains are %v, want %v first", what, chains, inputChain())
		}
	}
	wantInput("after the patch", d)
	must(t, d.Stop())
	// A reboot: the kernel is empty, and the fragment comes from the state directory.
	wantInput("after a reboot", aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir}}))
}

// storedContents returns what the next start would find in a state directory if the process
// was killed now. No write to the directory may be under way.
func storedContents(t *testing.T, dir string) *statedir.Contents {
	t.Helper()
	beside := t.TempDir()
	if err := os.CopyFS(beside, os.DirFS(dir)); err != nil {
		t.Error(err)
		return &statedir.Contents{}
	}
	d := openState(beside, func(kind string) { t.Errorf("the state directory is damaged: %s", kind) })
	c, err := d.Load()
	if err != nil {
		t.Error(err)
		return &statedir.Contents{}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	return c
}

// recordText returns a record for comparison.
func recordText(t *testing.T, c *statedir.Contents) string {
	t.Helper()
	text, err := json.Marshal(c.Record)
	must(t, err)
	return string(text)
}

// watchful is a kernel that reads the state directory at each commit, before it takes effect.
type watchful struct {
	aggregatortest.Kernel
	t   *testing.T
	dir string

	mu   sync.Mutex
	seen []*statedir.Contents
}

func (k *watchful) Commit(ops []kernel.Op) (kernel.Stats, error) {
	stored := storedContents(k.t, k.dir)
	k.mu.Lock()
	k.seen = append(k.seen, stored)
	k.mu.Unlock()
	return k.Kernel.Commit(ops)
}

// take returns what was stored at each commit since the last call.
func (k *watchful) take() []*statedir.Contents {
	k.mu.Lock()
	defer k.mu.Unlock()
	seen := k.seen
	k.seen = nil
	return seen
}

// countedFlows is a conntrack table of which each removal takes 3 entries.
type countedFlows struct {
	fails, compared atomic.Int64
	last            atomic.Pointer[[]conntrack.Destination]
}

func (f *countedFlows) Flush(_ context.Context, stale []conntrack.Stale) (int, error) {
	if !slices.ContainsFunc(stale, func(c conntrack.Stale) bool { return !c.Answered }) {
		return 0, nil
	}
	if f.fails.Add(-1) >= 0 {
		return 0, errors.New("no buffer space")
	}
	return 3, nil
}

func (f *countedFlows) Reconcile(_ context.Context, live []conntrack.Destination) (int, error) {
	f.last.Store(&live)
	f.compared.Add(1)
	return 0, nil
}

// TestFlowsAreCompared has flows compared with the live backends where a removal has failed, and after a restart
// once the fragment is back. The event of a commit has the number of those removed.
func TestFlowsAreCompared(t *testing.T) {
	flows := &countedFlows{}
	cfg := aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Flows: flows, StateDir: t.TempDir()}}
	d := aggregatortest.Start(t, cfg)
	compared := func(n int64, backend string) {
		t.Helper()
		aggregatortest.Eventually(t, "flows are compared", func() bool { return flows.compared.Load() == n })
		if last := *flows.last.Load(); len(last) != 1 || len(last[0].Backends) != 1 || last[0].Backends[0].String() != backend {
			t.Errorf("flows are compared with %+v, want %s", last, backend)
		}
	}
	events := watch(t, d)
	applyAs(t, d, "tester", fronts(dnsTo1))
	events.until(t, "the commit's event has the flows", func(e *weftv1.WatchResponse) bool { return e.GetCommit().GetFlows() == 3 })
	compared(1, "10.1.0.1:8080")
	flows.fails.Store(1)
	applyAs(t, d, "tester", fronts(dnsTo2))
	compared(2, "10.1.0.2:8080")
	must(t, d.Stop())
	d = aggregatortest.Start(t, cfg)
	if n := flows.compared.Load(); n != 2 {
		t.Fatal("flows are compared before the fragment is back")
	}
	applyAs(t, d, "tester", fronts(dnsTo1))
	compared(3, "10.1.0.1:8080")
}

// TestRecordIsStoredBeforeTheCommit has the process killed, as it were, at each commit: what
// the state directory has then must describe what the commit leads to.
func TestRecordIsStoredBeforeTheCommit(t *testing.T) {
	dir := t.TempDir()
	k := &watchful{t: t, dir: dir}
	start := func() *aggregatortest.Daemon {
		return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Flows: &countedFlows{}}})
	}
	d := start()
	ctx := aggregatortest.Context(t)
	// described checks the last commit against what is stored after it, and returns its record.
	described := func(what string, commits int) string {
		t.Helper()
		seen := k.take()
		if len(seen) < commits {
			t.Fatalf("%s: %d commits, want %d", what, len(seen), commits)
		}
		last, after := seen[len(seen)-1], storedContents(t, dir)
		text := recordText(t, last)
		same(t, what+": the record after the commit", recordText(t, after), text)
		if last.Revision < after.Revision {
			t.Errorf("%s: at the commit revision %d is reserved, after it %d", what, last.Revision, after.Revision)
		}
		for i, c := range seen {
			if !c.Trusted {
				t.Errorf("%s: at commit %d of %d the record is not trusted", what, i+1, len(seen))
			}
			if i < len(seen)-1 && recordText(t, c) == text {
				t.Errorf("%s: at commit %d of %d the record has the update already: %s", what, i+1, len(seen), text)
			}
		}
		return text
	}
	durable := func(name string, chains ...string) *weftv1.Fragment {
		f := blocklist(name, "10.0.0.1")
		f.Tables[0].Name, f.Lifetime = name, weftv1.Lifetime_LIFETIME_DURABLE
		for _, c := range chains {
			f.Tables[0].Chains = append(f.Tables[0].Chains, &weftv1.Chain{Name: c})
		}
		return f
	}
	apply := func(f *weftv1.Fragment) {
		t.Helper()
		applyAs(t, d, "p", f)
	}
	apply(blocklist("sticky", "10.0.0.1"))
	if text := described("a new fragment", 1); !strings.Contains(text, `"name":"sticky"`) || !strings.Contains(text, `"name":"blocked"`) {
		t.Errorf("the record lacks the fragment: %s", text)
	}
	apply(durable("durable", "one", "two"))
	described("a durable fragment", 1)
	apply(durable("durable", "two", "three"))
	if text := described("a durable update", 1); strings.Contains(text, `"one"`) || !strings.Contains(text, `"three"`) {
		t.Errorf("the record has the former chains: %s", text)
	}
	large := listOf("large", manyElements)
	large.Tables[0].Name = "large"
	apply(large)
	if text := described("a staged fragment", 3); !strings.Contains(text, `"name":"large"`) {
		t.Errorf("the record lacks the staged fragment: %s", text)
	}
	must(t, errorOf(d.Aggregator.Delete(ctx, "p", "large")))
	if text := described("a deletion", 1); strings.Contains(text, `"name":"large"`) {
		t.Errorf("the record has the deleted fragment: %s", text)
	}
	// The kernel has less than the state directory: the start commits what is missing.
	must(t, d.Stop())
	k.Flush()
	d = start()
	if text := described("a start", 1); !strings.Contains(text, `"name":"durable"`) {
		t.Errorf("the record of the start lacks the durable fragment: %s", text)
	}
}

// TestFlowsAreNotedBeforeTheCommit has a destination lose its backends: the state directory
// names it at that commit.
func TestFlowsAreNotedBeforeTheCommit(t *testing.T) {
	dir := t.TempDir()
	k := &watchful{t: t, dir: dir}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Flows: &countedFlows{}}})
	for _, elements := range [][]string{{dnsTo1, otherTo1}, {otherTo1}} {
		applyAs(t, d, "p", fronts(elements...))
	}
	seen := k.take()
	same(t, "noted flows of the first commit", fmt.Sprint(seen[0].Flows), "[]")
	same(t, "noted flows of the commit that leaves a destination without backends", fmt.Sprint(seen[1].Flows), "[{10.96.0.1 53 [10.1.0.1:8080] false map[] false}]")
}

// TestRecordOfNothing has a record that says less than the kernel: nothing is
// swept while the fragments that the rules name are away.
func TestRecordOfNothing(t *testing.T) {
	k := &aggregatortest.Kernel{}
	dir := t.TempDir()
	ctx := aggregatortest.Context(t)
	cfg := aggregator.Config{Kernel: k, StateDir: dir}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.1"))
	must(t, d.Stop())
	must(t, os.Remove(database(dir)))
	empty := openState(dir, func(string) {})
	must(t, errorOf(empty.Load()))
	must(t, empty.SaveRecord(statedir.Record{}, 1))
	must(t, empty.Close())
	d = aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	c := d.Dial(t, "other")
	mustApply(t, c, blocklist("other", "10.0.0.9"))
	list, err := c.List(ctx)
	if err != nil || len(list.GetFragments()) != 2 || list.GetFragments()[1].GetState() != weftv1.FragmentStatus_STATE_ADOPTED {
		t.Fatalf("list %v, error %v: want the fragment that the rules name as adopted", list, err)
	}
	commits := len(k.Commits())
	mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.1"))
	same(t, "commits once the fragment is back as it was", len(k.Commits()), commits)
}

// TestStandbyReadsTheRecordLast has a second daemon stand by while the first one
// goes on: what it adopts belongs to the fragments of then, not of its own start.
func TestStandbyReadsTheRecordLast(t *testing.T) {
	k, dir := &aggregatortest.Kernel{}, t.TempDir()
	first := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	c := first.Dial(t, "tester")
	mustApply(t, c, blocklist("one", "10.0.0.1"))
	k.SetOwned(&kernel.OwnedError{Table: demo, PID: 1, Process: "weft"})
	second := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Standby: true, Retry: 1e6}})
	aggregatortest.Eventually(t, "it stands by", func() bool { return second.Aggregator.Healthy() != nil })
	mustApply(t, c, blocklist("two", "10.0.0.2"))
	must(t, first.Stop())
	k.SetOwned(nil)
	<-second.Aggregator.Ready()
	// One of two returns: what the other one has stays.
	mustApply(t, second.Dial(t, "tester"), blocklist("one", "10.0.0.1"))
	wantElements(t, k, "10.0.0.1", "10.0.0.2")
	if fragments, _ := second.Aggregator.List(); len(fragments) != 2 || fragments[1].GetState() != weftv1.FragmentStatus_STATE_ADOPTED {
		t.Fatalf("fragments %v: want both, the second one adopted", fragments)
	}
}

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
	same(t, "the kernel", k.String(), all)
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
