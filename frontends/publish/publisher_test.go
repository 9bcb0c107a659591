package publish

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// names is a Renderer of items whose key and value are strings: each is an element of
// one map. It records what an Observer is told.
type names struct {
	mu sync.Mutex
	// changed has the wanted values since the last Refresh, wanted all of them.
	changed, wanted, rendered map[string]string
	committed                 map[string]string
	rejected, settled         int
	restored, keep, divides   bool
	portion                   int
	p                         *Publisher[string, string]
	backlog                   *Backlog
}

const (
	family, table, set = "ip", "names", "all"
)

func newNames() *names {
	return &names{
		changed: make(map[string]string), wanted: make(map[string]string), rendered: make(map[string]string), committed: make(map[string]string),
		backlog: NewBacklog(nil),
	}
}

// want changes items; an empty value deletes one.
func (n *names) want(items map[string]string) {
	n.mu.Lock()
	maps.Copy(n.changed, items)
	n.backlog.Add(map[string]int{"item": len(items)})
	n.mu.Unlock()
	n.p.Wake()
}

func value(m map[string]string, key string) *string {
	if v := m[key]; v != "" {
		return &v
	}
	return nil
}

func (n *names) Refresh() ([]Change[string, string], bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.backlog.Take()
	var out []Change[string, string]
	for _, k := range slices.Sorted(maps.Keys(n.changed)) {
		if n.changed[k] != n.wanted[k] {
			out = append(out, Change[string, string]{Key: k, Old: value(n.wanted, k), New: value(n.changed, k)})
			n.wanted[k] = n.changed[k]
		}
	}
	clear(n.changed)
	for _, c := range out {
		n.p.Want(c.Key)
	}
	return out, false
}

func (n *names) Value(key string) *string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return value(n.wanted, key)
}

func (n *names) Render(items []Change[string, string], _ bool) Update {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := &weftv1.ElementPatch{Set: set}
	for _, c := range items {
		old := n.rendered[c.Key]
		switch {
		case c.New == nil && old != "":
			delete(n.rendered, c.Key)
			e.Remove = append(e.Remove, c.Key)
		case c.New != nil && *c.New != old:
			n.rendered[c.Key] = *c.New
			e.Add = append(e.Add, &weftv1.Element{Key: c.Key, Value: *c.New})
		}
	}
	if len(e.Add)+len(e.Remove) == 0 {
		return Update{}
	}
	return Update{Patch: &weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{Family: family, Name: table, Elements: []*weftv1.ElementPatch{e}}}}}
}

func (n *names) Snapshot() *weftv1.Fragment {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := &weftv1.Set{Name: set}
	for _, k := range slices.Sorted(maps.Keys(n.rendered)) {
		m.Elements = append(m.Elements, &weftv1.Element{Key: k, Value: n.rendered[k]})
	}
	return &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{Family: family, Name: table, Maps: []*weftv1.Set{m}}}}
}

func (n *names) Owner(object *weftv1.ObjectName) (string, bool) {
	return object.GetKey(), object.GetKey() != ""
}

func (n *names) Restore(*weftv1.Fragment) { n.restored = true }

func (n *names) Sent(Sent) {}

func (n *names) Committed(items []Change[string, string]) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range items {
		delete(n.committed, c.Key)
		if c.New != nil {
			n.committed[c.Key] = *c.New
		}
	}
}

func (n *names) Size(value *string) int { return len(*value) }

// Divide divides the smallest item by letters, if it is alone.
func (n *names) Divide(all []Change[string, string], most int) (now, later []Change[string, string]) {
	length := func(v *string) int {
		if v == nil {
			return 0
		}
		return len(*v)
	}
	now, later = smallest(all, most, func(c *Change[string, string]) int { return 1 + length(c.Old) + length(c.New) })
	if !n.divides || len(now) != 1 {
		return now, later
	}
	c, step := &now[0], ""
	switch had := length(c.Old); {
	case c.New == nil && had > most:
		step = (*c.Old)[:had-most]
	case c.New != nil && len(*c.New) > had+most:
		step = (*c.New)[:had+most]
	default:
		return now, later
	}
	later = append(slices.Clone(later), Change[string, string]{Key: c.Key, Old: &step, New: c.New})
	c.New = &step
	return now, later
}

func (n *names) LeftOut() map[string]error { return nil }

func (n *names) Refused(keys []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rejected += len(keys)
}

func (n *names) Answered(time.Time, time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settled++
}

// has reports whether an item has a wanted value.
func (n *names) has(key, v string) bool {
	got := n.Value(key)
	return got != nil && *got == v
}

// left returns the quarantined items.
func (n *names) left() string { return strings.Join(n.p.Refused(), " ") }

// run publishes names at an aggregator until the test ends. The channel has Run's error.
func run(t *testing.T, n *names, agg *publishtest.Aggregator) <-chan error {
	t.Helper()
	return runAs(t, n, n, Config[string, string]{Observer: n, MaxRetry: time.Minute, Keep: n.keep, Portion: n.portion}, agg)
}

// runAs is run with another Renderer of the names, and what else the configuration has.
func runAs(t *testing.T, n *names, r Renderer[string, string], cfg Config[string, string], agg *publishtest.Aggregator) <-chan error {
	t.Helper()
	ready := make(chan struct{})
	close(ready)
	cfg.Socket, cfg.Publisher, cfg.Fragment, cfg.Compare = agg.Socket, "test", "f", cmp.Compare[string]
	cfg.Renderer, cfg.Ready, cfg.Backlog = r, ready, n.backlog
	p, err := New(cfg)
	publishtest.Must(t, err)
	n.p = p
	ctx, cancel := context.WithCancel(t.Context())
	out, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		out <- p.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return out
}

var await = publishtest.Await

// published returns the elements that the aggregator has, as "key=value".
func published(agg *publishtest.Aggregator) string {
	var out []string
	for k, v := range agg.Elements() {
		key := nametest.Parse(k).GetKey()
		out = append(out, key+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// rejects is a judge that rejects updates with a value, and names the elements or not.
func rejects(named bool, bad string) publishtest.Judge {
	return func(elements map[string]string) []*weftv1.Violation {
		for _, k := range slices.Sorted(maps.Keys(elements)) {
			if elements[k] != bad {
				continue
			}
			v := &weftv1.Violation{Message: "operation not supported", Reason: weftv1.Violation_REASON_KERNEL}
			if named {
				v.Object = nametest.Parse(k)
			}
			return []*weftv1.Violation{v}
		}
		return nil
	}
}

// TestPublish sends a snapshot, and patches from then on.
func TestPublish(t *testing.T) {
	agg, n := publishtest.New(t), newNames()
	run(t, n, agg)
	await(t, "the empty snapshot", func() bool { return n.p.Status().Published })
	n.want(map[string]string{"a": "1", "b": "1"})
	await(t, "two items", func() bool { return published(agg) == "a=1 b=1" })
	n.want(map[string]string{"a": "", "b": "2"})
	await(t, "their changes", func() bool { return published(agg) == "b=2" })
	await(t, "the end of the backlog", func() bool { return n.backlog.Oldest().IsZero() })
	publishtest.Equal(t, "updates", strings.Join(agg.Updates(), " "), "snapshot patch patch")
	n.mu.Lock()
	defer n.mu.Unlock()
	if !maps.Equal(n.committed, map[string]string{"b": "2"}) || n.settled < 2 {
		t.Errorf("committed %v, settled %d times", n.committed, n.settled)
	}
}

// TestBisection finds bad items among many, old and new, without their names: the good
// ones are published, and the old value of a bad one does not stay.
func TestBisection(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprintf("named=%t", named), func(t *testing.T) {
			agg, n := publishtest.New(t), newNames()
			run(t, n, agg)
			n.want(items(20, "1"))
			await(t, "the first items", func() bool { return len(agg.Elements()) == 20 })
			agg.Judge(rejects(named, "bad"))
			next := items(20, "2")
			next["k0003"], next["k0007"], next["k0019"], next["new"] = "bad", "bad", "bad", "bad"
			n.want(next)
			await(t, "the quarantine", func() bool { return n.left() == "k0003 k0007 k0019 new" })
			await(t, "the good items", func() bool { return strings.Count(published(agg), "=2") == 17 && len(agg.Elements()) == 17 })
			// One is repaired, one is deleted, one stays.
			n.want(map[string]string{"k0003": "3", "k0007": ""})
			await(t, "the repaired item", func() bool { return strings.Contains(published(agg), "k0003=3") && n.left() == "k0019 new" })
			if n.mu.Lock(); n.rejected < 4 {
				t.Errorf("%d items were reported", n.rejected)
			}
			n.mu.Unlock()
		})
	}
}

// TestBackoff rejects every update while items change: the changes wait for the next
// attempt, and take effect with it.
func TestBackoff(t *testing.T) {
	for _, reason := range []weftv1.Violation_Reason{weftv1.Violation_REASON_PERMISSION, weftv1.Violation_REASON_KERNEL} {
		t.Run(reason.String(), func(t *testing.T) { backOff(t, reason) })
	}
}

func backOff(t *testing.T, reason weftv1.Violation_Reason) {
	agg, n := publishtest.New(t), newNames()
	agg.Judge(func(map[string]string) []*weftv1.Violation {
		return []*weftv1.Violation{{Message: "no", Reason: reason}}
	})
	began := time.Now()
	run(t, n, agg)
	await(t, "an attempt", func() bool { return len(agg.Updates()) >= 1 })
	for i := range 300 {
		n.want(map[string]string{"a": fmt.Sprint(i + 1)})
		await(t, "a refresh", func() bool { return n.has("a", fmt.Sprint(i+1)) })
	}
	// The session repeats a rejected snapshot on its own, too, at growing intervals.
	if got, most := len(agg.Updates()), 10+4*int(time.Since(began)/minRetry); got > most {
		t.Errorf("%d updates for 300 changes while all are rejected, want at most %d", got, most)
	}
	if n.backlog.Oldest().IsZero() {
		t.Error("nothing waits")
	}
	agg.Judge(nil)
	await(t, "the last value", func() bool { return published(agg) == "a=300" && n.backlog.Oldest().IsZero() })
}

// TestSuspectChanges changes an item that the rejections do not name at each attempt: it is found.
func TestSuspectChanges(t *testing.T) {
	agg, n := publishtest.New(t), newNames()
	attempts := 0
	agg.Judge(func(elements map[string]string) []*weftv1.Violation {
		for _, v := range elements {
			if strings.HasPrefix(v, "bad") {
				attempts++
				n.want(map[string]string{"c": fmt.Sprint("bad", attempts)})
				return []*weftv1.Violation{{Message: "no", Reason: weftv1.Violation_REASON_KERNEL}}
			}
		}
		return nil
	})
	run(t, n, agg)
	n.want(map[string]string{"a": "1", "b": "1", "c": "bad", "d": "1"})
	await(t, "the quarantine", func() bool { return n.left() == "c" && published(agg) == "a=1 b=1 d=1" })
}

// TestQuarantinedItemChanges changes a rejected item all the time: it is tried once a
// second at most.
func TestQuarantinedItemChanges(t *testing.T) {
	agg, n := publishtest.New(t), newNames()
	agg.Judge(func(elements map[string]string) []*weftv1.Violation {
		for k, v := range elements {
			if strings.HasPrefix(v, "bad") {
				return []*weftv1.Violation{{Object: nametest.Parse(k), Message: "no", Reason: weftv1.Violation_REASON_KERNEL}}
			}
		}
		return nil
	})
	run(t, n, agg)
	n.want(map[string]string{"a": "bad", "b": "1"})
	await(t, "the quarantine", func() bool { return n.left() == "a" && published(agg) == "b=1" })
	before, began := len(agg.Updates()), time.Now()
	for i := range 300 {
		v := fmt.Sprint("bad", i)
		n.want(map[string]string{"a": v})
		await(t, "a refresh", func() bool { return n.has("a", v) })
	}
	// An attempt is an update with the item and one without it.
	if got, most := len(agg.Updates())-before, 2*(int(time.Since(began)/minRetry)+1); got > most {
		t.Errorf("%d updates in %v, want at most %d", got, time.Since(began), most)
	}
}

// TestTakenOver ends if another process publishes the fragment.
func TestTakenOver(t *testing.T) {
	agg, n := publishtest.New(t), newNames()
	agg.Judge(func(map[string]string) []*weftv1.Violation {
		return []*weftv1.Violation{{Message: "taken over", Reason: weftv1.Violation_REASON_TAKEN_OVER}}
	})
	if err := <-run(t, n, agg); err == nil || !strings.Contains(err.Error(), "run only one") {
		t.Errorf("run ended with %v", err)
	}
}

// TestRestore adopts the fragment of an earlier process.
func TestRestore(t *testing.T) {
	agg, n := publishtest.New(t), newNames()
	run(t, n, agg)
	n.want(map[string]string{"a": "1"})
	await(t, "an item", func() bool { return published(agg) == "a=1" })
	m := newNames()
	run(t, m, agg)
	m.want(map[string]string{"a": "1"})
	await(t, "an update", func() bool { return m.p.Status().Published })
	if !m.restored || n.restored {
		t.Errorf("restored %t, and the first %t", m.restored, n.restored)
	}
}

// TestConfig refuses a configuration that lacks something.
func TestConfig(t *testing.T) {
	if _, err := New(Config[string, string]{Publisher: "test"}); err == nil || !strings.Contains(err.Error(), "are required") {
		t.Errorf("error %v", err)
	}
}
