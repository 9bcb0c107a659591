package publish

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// oneByOne is names as a Renderer that sends one item in each update.
type oneByOne struct {
	*names
	queue []Change[string, string]
	// early is how many items were reported as committed before their update.
	early int
}

func (o *oneByOne) Render(items []Change[string, string], patch bool) Update {
	for _, c := range items {
		o.queue = slices.DeleteFunc(o.queue, func(q Change[string, string]) bool { return q.Key == c.Key })
	}
	o.queue = append(o.queue, items...)
	if len(o.queue) == 0 {
		return Update{}
	}
	next := o.queue[:1]
	o.queue = o.queue[1:]
	return o.names.Render(next, patch)
}

func (o *oneByOne) Pending() bool { return len(o.queue) > 0 }

func (o *oneByOne) Waits(key string) bool {
	return slices.ContainsFunc(o.queue, func(c Change[string, string]) bool { return c.Key == key })
}

func (o *oneByOne) Committed(items []Change[string, string]) {
	o.names.Committed(items)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(items) > 1 {
		o.early += len(items) - 1
	}
}

// TestStages sends the updates of a change at once, whatever the interval between two
// changes is, and reports each item with its own.
func TestStages(t *testing.T) {
	agg, o := publishtest.New(t), &oneByOne{names: newNames()}
	runAs(t, o.names, o, Config[string, string]{Observer: o, MinInterval: time.Second, MaxRetry: time.Minute}, agg)
	await(t, "the empty snapshot", func() bool { return o.p.Status().Published })
	want := make(map[string]string)
	for _, k := range strings.Fields("a b c d e f g h i j") {
		want[k] = "1"
	}
	began := time.Now()
	o.want(want)
	await(t, "all items", func() bool { return len(agg.Elements()) == len(want) && o.backlog.Oldest().IsZero() })
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("ten stages took %v", took)
	}
	if got := strings.Join(agg.Updates(), " "); got != "snapshot"+strings.Repeat(" patch", len(want)) {
		t.Errorf("updates %s", got)
	}
	await(t, "the answer", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.settled > 0
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.early > 0 || o.settled != 1 {
		t.Errorf("%d items were reported before their update, everything was in force %d times", o.early, o.settled)
	}
}

// TestStageRejected leaves out the item whose stage is rejected, named or not.
func TestStageRejected(t *testing.T) {
	for _, named := range []bool{true, false} {
		agg, o := publishtest.New(t), &oneByOne{names: newNames()}
		agg.Judge(rejects(named, "bad"))
		runAs(t, o.names, o, Config[string, string]{Observer: o, MaxRetry: time.Second}, agg)
		await(t, "the empty snapshot", func() bool { return o.p.Status().Published })
		o.want(map[string]string{"a": "1", "b": "bad", "c": "1"})
		await(t, "the items but one", func() bool { return published(agg) == "a=1 c=1" && o.left() == "b" })
	}
}
