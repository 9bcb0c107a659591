package aggregator

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/queue"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/status"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/lint"
)

var update = flag.Bool("update", false, "write the goldens anew")

// TestMetricsGolden compares names, types, help and labels with what dashboards
// and alerts were written against.
func TestMetricsGolden(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := newMetrics(reg, func() int { return 0 })
	// Rejections have no series before there is one.
	m.rejected(&RejectedError{Fragment: desired.Key{Publisher: "p", Name: "f"}})
	families, err := reg.Gather()
	must(t, err)
	var b strings.Builder
	for _, f := range families {
		labels := map[string]bool{}
		for _, s := range f.GetMetric() {
			for _, l := range s.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		fmt.Fprintf(&b, "%s{%s} %s: %s\n", f.GetName(), strings.Join(slices.Sorted(maps.Keys(labels)), ","), strings.ToLower(f.GetType().String()), f.GetHelp())
	}
	const golden = "testdata/metrics.txt"
	if *update {
		must(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("metrics differ from %s; -update writes it (-want +got):\n%s", golden, diff)
	}
	// The documentation has a table of them.
	doc, err := os.ReadFile("doc.go")
	must(t, err)
	for _, f := range families {
		if !strings.Contains(string(doc), f.GetName()) {
			t.Errorf("doc.go does not tell of %s", f.GetName())
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPublisherLabelsAreBounded(t *testing.T) {
	m := newMetrics(nil, func() int { return 0 })
	labels := map[string]bool{}
	for i := range 10 * maxPublisherLabels {
		labels[m.publisherLabel(fmt.Sprintf("p%d", i))] = true
	}
	if len(labels) != maxPublisherLabels+1 || !labels[otherPublisher] || m.publisherLabel("p0") != "p0" {
		t.Errorf("%d label values: want %d and %s", len(labels), maxPublisherLabels, otherPublisher)
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := newMetrics(reg, func() int { return 5 })
	m.committed(&weftv1.Counts{ElementsAdded: 3, ElementsDeleted: 1, RulesAdded: 2}, 42, timing{wait: time.Second, build: time.Millisecond, kernel: time.Millisecond})
	m.committed(&weftv1.Counts{RulesDeleted: 1}, 43, timing{})
	m.shadowed.Set(6)
	m.worked(desired.Work{Keys: 3}, desired.Work{Keys: 5, Objects: 1})
	m.repaired(&weftv1.Counts{ElementsAdded: 1}, 44)
	m.rejected(&RejectedError{Fragment: desired.Key{Publisher: "p", Name: "f"}, Violations: []*weftv1.Violation{{Reason: weftv1.Violation_REASON_SYNTAX}, {Reason: weftv1.Violation_REASON_LIMIT}}})
	families, err := reg.Gather()
	must(t, err)
	got := map[string]float64{}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			name := f.GetName()
			for _, l := range s.GetLabel() {
				name += "/" + l.GetValue()
			}
			got[name] = s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount())
		}
	}
	// All others are 0; the golden has their names.
	want := map[string]float64{
		"weft_aggregator_work_total/keys": 2, "weft_aggregator_work_total/objects": 1, "weft_commits_total": 2,
		"weft_commit_duration_seconds/wait": 1, "weft_commit_duration_seconds/build": 1, "weft_commit_duration_seconds/kernel": 1,
		"weft_elements_changed_total/added": 4, "weft_elements_changed_total/deleted": 1,
		"weft_rules_changed_total/added": 2, "weft_rules_changed_total/deleted": 1, "weft_rejections_total/p/syntax": 1,
		"weft_shadowed_elements": 6, "weft_drift_repairs_total": 1, "weft_pending_updates": 5, "weft_revision": 44,
	}
	for name := range want {
		got[name] += 0
	}
	for name, v := range got {
		if v != want[name] {
			t.Errorf("%s is %v: want %v", name, v, want[name])
		}
	}
	for _, id := range lint.IDs {
		if _, ok := got["weft_findings/"+string(id)]; !ok {
			t.Errorf("findings %s have no metric", id)
		}
	}
	for r := range weftv1.Violation_Reason_name {
		if reasonLabel(weftv1.Violation_Reason(r)) == "unknown" {
			t.Errorf("reason %v has no label", weftv1.Violation_Reason(r))
		}
	}
	if got := reasonLabel(99); got != "unknown" {
		t.Errorf("a reason of another version has label %q", got)
	}
}

// TestEachUpdateHasItsOwnOutcome has a commit of many updates, of which those of durable fragments cannot be
// stored: their answers say so, each for its own fragment, and the others are committed.
func TestEachUpdateHasItsOwnOutcome(t *testing.T) {
	dir := t.TempDir()
	a, err := New(Config{Kernel: idle{}, StateDir: dir})
	must(t, err)
	// The database cannot be made, so that each write fails.
	blocked := filepath.Join(dir, "state.db.tmp")
	must(t, os.MkdirAll(filepath.Join(blocked, "x"), 0o700))
	t.Cleanup(func() { _ = a.dir.Close() })
	_, err = a.dir.Load()
	must(t, err)
	const updates = 20_000
	batch := make([]*submission, updates)
	for i := range batch {
		key := desired.Key{Publisher: "tester", Name: strconv.Itoa(i)}
		batch[i] = &submission{update: &desired.Update{Fragment: key}, durable: i%2 == 0, result: make(chan Result, 1)}
	}
	a.writer.conclude(batch, Result{Revision: 7})
	for _, s := range batch {
		r := <-s.result
		rejected := (*RejectedError)(nil)
		switch {
		case r.Revision != 7:
			t.Fatalf("%s is answered with revision %d, want 7", s.key(), r.Revision)
		case !s.durable && r.Err != nil:
			t.Fatalf("%s is in force and needs not be stored: %v", s.key(), r.Err)
		case !s.durable:
		case !errors.As(r.Err, &rejected):
			t.Fatalf("%s is not stored, and its answer is %v", s.key(), r.Err)
		case rejected.Fragment != s.key() || rejected.Violations[0].GetReason() != weftv1.Violation_REASON_LIMIT:
			t.Fatalf("the answer to %s is %v", s.key(), r.Err)
		}
	}
	// A later store of the same state directory succeeds: the failure is not kept.
	must(t, os.RemoveAll(blocked))
	s := &submission{update: &desired.Update{Fragment: desired.Key{Publisher: "tester", Name: "later"}, Snapshot: true}, durable: true, result: make(chan Result, 1)}
	a.writer.conclude([]*submission{s}, Result{Revision: 8})
	if r := <-s.result; r.Err != nil || r.Revision != 8 {
		t.Errorf("a later update is answered with %v", r)
	}
}

// TestConfigIsValidated lists all that is wrong with a Config.
func TestConfigIsValidated(t *testing.T) {
	_, err := New(Config{Rate: -1, Drain: -1})
	for _, want := range []string{"configure aggregator: ", "no Kernel", "got Rate -1", "negative Retry, Drain"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q in it", err, want)
		}
	}
}

// TestPlanInParts divides the changes of a plan by size, and loses none.
func TestPlanInParts(t *testing.T) {
	a, err := New(Config{Kernel: idle{}})
	must(t, err)
	const elements = 1000
	set := &weftv1.Set{Name: "s", Type: "inet_service"}
	for i := range elements {
		set.Elements = append(set.Elements, &weftv1.Element{Key: strconv.Itoa(1000 + i)})
	}
	p := a.newPlanning("p", &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{
		{Name: "f", Tables: []*weftv1.Table{{Family: "ip", Name: "t", Sets: []*weftv1.Set{set}}}},
	}})
	must(t, a.writer.plan(p))
	const objects = 2 // the table and the set
	for _, limit := range []int{1, 100, 10_000, message.PartBytes} {
		whole, n := &weftv1.PlanResponse{}, 0
		for part := range p.outcome().Parts(limit) {
			if size := proto.Size(part); size > limit+1000 {
				t.Errorf("limit of %d bytes: part %d has %d", limit, n, size)
			}
			n++
			proto.Merge(whole, part)
		}
		if got := len(whole.GetChanges()); got != objects+elements {
			t.Errorf("limit of %d bytes: %d changes: want %d", limit, got, objects+elements)
		}
		if (n == 1) != (limit == message.PartBytes) {
			t.Errorf("limit of %d bytes: %d parts", limit, n)
		}
		if whole.GetCounts().GetElementsAdded() != elements {
			t.Errorf("limit of %d bytes: counts are %v: want all", limit, whole.GetCounts())
		}
	}
	if got := views.Fragments(a.writer.state); len(got) != 0 {
		t.Errorf("the plan left fragments %v", got)
	}
	if message.Name(desired.Key{}) != nil {
		t.Error("nobody has a name")
	}
}

// TestCausedRepairIsPaid has an update of a publisher cause a comparison with the kernel that takes
// long: the publisher pauses, although its update was small and its commits before were short.
func TestCausedRepairIsPaid(t *testing.T) {
	of := func(publisher string) *submission {
		return &submission{update: &desired.Update{Fragment: desired.Key{Publisher: publisher}}}
	}
	for caused, pauses := range map[bool]bool{true: true, false: false} {
		now := time.Unix(1000, 0)
		a, err := New(Config{Kernel: dumps{called: burn}})
		must(t, err)
		a.writer.queue = queue.New[*submission](func() time.Time { return now }, func(string) bool { return false })
		a.writer.drift = "a refusal"
		must(t, a.writer.repairFor([]*submission{of("a")}, caused))
		a.writer.queue.Put(of("other"))
		a.writer.queue.Put(of("a"))
		taken := a.writer.queue.Take(func(*submission) int { return 1 })
		if got := len(taken) == 1 && taken[0].Publisher() == "other"; got != pauses {
			t.Errorf("the update caused it: %v; its publisher pauses: %v (%d taken)", caused, got, len(taken))
		}
	}
}

// burn uses 100 ms of the thread's processor time.
func burn() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var ts unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
		return time.Duration(ts.Nano())
	}
	for began := used(); used()-began < 100*time.Millisecond; {
	}
}

// idle is a kernel that owns nothing and accepts every plan.
type idle struct{ Kernel }

func (idle) Owner() bool             { return false }
func (idle) Check([]kernel.Op) error { return nil }

// dumps is an empty kernel that is called when it is read.
type dumps struct {
	idle
	called func()
}

func (d dumps) Commit([]kernel.Op) (kernel.Stats, error) { return kernel.Stats{}, nil }
func (d dumps) Adopt() ([]kernel.Table, error)           { return nil, nil }
func (d dumps) Dump() ([]kernel.Table, error) {
	d.called()
	return nil, nil
}

// TestElementsWakeNoInspection has plans with and without something that findings are about: findings
// are looked for, and a commit has a line of its own in the log, only if rules, chains or sets change.
func TestElementsWakeNoInspection(t *testing.T) {
	elements := []kernel.Op{kernel.AddElements{}, kernel.DeleteElements{}, kernel.FlushSet{}}
	if structural(&desired.Plan{Ops: elements}) {
		t.Error("a commit of elements alone looks for findings")
	}
	for _, op := range []kernel.Op{kernel.AddRule{}, kernel.DeleteRule{}, kernel.AddChain{}, kernel.AddSet{}} {
		if !structural(&desired.Plan{Ops: append(elements, op)}) {
			t.Errorf("a commit with %T looks for no findings", op)
		}
	}
}

// FuzzRecord adopts arbitrary records, on a kernel that has nothing: no panic, and
// nothing to be changed.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"desired":{"fragments":[
{"publisher":"p","name":"f","priority":-1,"lifetime":"durable","tables":[{"family":"ip","name":"t","chains":[{"name":"c","sets":["s"],"chains":["d"]}],"sets":[{"name":"s","conntrack":true}]}]}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r statedir.Record
		if json.Unmarshal(b, &r) != nil {
			return
		}
		state := merge.New()
		adopt.Dump(state, nil, r.Desired)
		status.NewFragments().Adopt(state, 7, time.Unix(0, 0))
		if plan := planner.Make(state); len(plan.Ops) > 0 {
			t.Fatalf("adopting a record alone plans %v", plan.Ops)
		}
	})
}
