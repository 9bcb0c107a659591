package publish

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// TestOutcome follows items through all states: each comes from a commit.
func TestOutcome(t *testing.T) {
	agg, n := publishtest.New(t), newNames()
	agg.Judge(rejects(true, "bad"))
	run(t, n, agg)
	if o := n.p.Outcome("a"); o.State != Wanted || o.Revision != 0 {
		t.Errorf("before the start: %+v", o)
	}
	n.want(map[string]string{"a": "1", "b": "bad"})
	await(t, "an item", func() bool { return n.p.Outcome("a").State == InForce })
	first := n.p.Outcome("a")
	if first.Revision == 0 || first.Since.IsZero() || first.Reason != nil {
		t.Errorf("in force: %+v", first)
	}
	if o := n.p.Outcome("b"); o.State != Refused || o.Revision != 0 || !strings.Contains(o.Reason.Error(), "operation not supported") || o.Retry.IsZero() {
		t.Errorf("refused: %+v", o)
	}
	// A repaired item is in force, and the others keep their revision.
	n.want(map[string]string{"b": "2"})
	await(t, "the repaired item", func() bool { return n.p.Outcome("b").State == InForce })
	if o := n.p.Outcome("b"); o.Revision <= first.Revision || o.Reason != nil || !o.Retry.IsZero() || n.p.Outcome("a") != first {
		t.Errorf("in force: %+v and %+v, which was %+v", o, n.p.Outcome("a"), first)
	}
	// While nothing is committed, an older value stays in force.
	agg.Stop()
	n.want(map[string]string{"a": "3"})
	await(t, "the change", func() bool { return n.p.Outcome("a").State == Wanted })
	await(t, "the loss of the aggregator", func() bool { return n.p.Outcome("a").Reason != nil })
	if o := n.p.Outcome("a"); o.Revision != first.Revision {
		t.Errorf("changed, and not committed: %+v", o)
	}
	agg.Start(t)
	await(t, "the commit", func() bool { return n.p.Outcome("a").State == InForce })
	n.want(map[string]string{"a": ""})
	await(t, "the removal", func() bool { return n.p.Outcome("a") == Outcome{} })
}

// rejectsAll is a judge that rejects updates with all bad values together, without names.
func rejectsAll(reason weftv1.Violation_Reason, bad ...string) publishtest.Judge {
	return func(elements map[string]string) []*weftv1.Violation {
		found := slices.Collect(maps.Values(elements))
		for _, v := range bad {
			if !slices.Contains(found, v) {
				return nil
			}
		}
		return []*weftv1.Violation{{Message: "no", Reason: reason}}
	}
}

// items returns n items with a value.
func items(n int, value string) map[string]string {
	out := make(map[string]string)
	for i := range n {
		out[fmt.Sprintf("k%04d", i)] = value
	}
	return out
}

// TestAttempts counts the updates that it takes to find one bad item among 10,000, and two that
// are bad only together: before the start of the process and after it.
func TestAttempts(t *testing.T) {
	const n = 10_000
	most := 26 // 2 log2(n)
	for _, tt := range []struct {
		reason weftv1.Violation_Reason
		bad    []string
	}{
		{weftv1.Violation_REASON_KERNEL, []string{"bad"}},
		{weftv1.Violation_REASON_LIMIT, []string{"bad"}},
		{weftv1.Violation_REASON_KERNEL, []string{"bad", "worse"}},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(len(tt.bad), tt.reason, restart), func(t *testing.T) {
				agg, wants := publishtest.New(t), newNames()
				run(t, wants, agg)
				wants.want(items(n, "1"))
				await(t, "the good items", func() bool { return len(agg.Elements()) == n })
				agg.Judge(rejectsAll(tt.reason, tt.bad...))
				sent, all := len(agg.Updates()), items(n, "1")
				if !restart {
					all = items(n, "2")
				}
				for i, v := range tt.bad {
					all[fmt.Sprintf("k%04d", 7000-4000*i)] = v
				}
				if restart {
					wants = newNames()
					wants.changed = all
					run(t, wants, agg)
				} else {
					wants.want(all)
				}
				await(t, "the refusal", func() bool { return len(wants.p.Refused()) == 1 && wants.p.Status().Err == nil })
				await(t, "the rest", func() bool { return len(agg.Elements()) == n-1 && wants.backlog.Oldest().IsZero() })
				updates := agg.Updates()[sent:]
				if len(updates) > most {
					t.Errorf("%d updates: %v, want at most %d", len(updates), updates, most)
				}
				if key := wants.p.Refused()[0]; wants.p.Outcome(key).State != Refused {
					t.Errorf("outcome %+v", wants.p.Outcome(key))
				}
				publishtest.Equal(t, fmt.Sprintf("updates are planned: %v", updates), slices.Contains(updates, "plan"), restart)
			})
		}
	}
}

// TestNothingIsWithdrawn restarts with an item that is refused without its name: content of the
// earlier process stays in force during the bisection.
func TestNothingIsWithdrawn(t *testing.T) {
	agg, before, now := publishtest.New(t), newNames(), newNames()
	all := items(100, "1")
	run(t, before, agg)
	before.want(all)
	await(t, "the items", func() bool { return len(agg.Elements()) == 100 })
	parts := 0
	agg.Judge(func(elements map[string]string) []*weftv1.Violation {
		// While a part is planned, the session may send on its own.
		if len(elements) < 100 {
			parts++
			publishtest.Equal(t, "items that the session would send", len(now.p.snapshot().GetTables()[0].GetMaps()[0].GetElements()), 101)
		}
		return rejectsAll(weftv1.Violation_REASON_KERNEL, "bad")(elements)
	})
	all["new"] = "bad"
	now.changed = all
	least := make(chan int, 1)
	done := make(chan struct{})
	go func() {
		n := 100
		for {
			select {
			case <-done:
				least <- n
				return
			default:
				n = min(n, len(agg.Elements()))
			}
		}
	}()
	run(t, now, agg)
	await(t, "the refusal", func() bool { return len(now.p.Refused()) == 1 && now.p.Outcome("k0000").State == InForce })
	close(done)
	agg.Judge(nil)
	if n := <-least; n != 100 || parts == 0 {
		t.Errorf("only %d items were in force at a time", n)
	}
}

// TestOthersDuringBisection changes a good item while a bad one is looked for: it is committed
// before that ends.
func TestOthersDuringBisection(t *testing.T) {
	agg, n := publishtest.New(t), newNames()
	run(t, n, agg)
	n.want(items(64, "1"))
	n.want(map[string]string{"other": "1"})
	await(t, "the items", func() bool { return len(agg.Elements()) == 65 })
	attempts, inForce, known := 0, 0, make(chan struct{})
	agg.Judge(func(elements map[string]string) []*weftv1.Violation {
		attempts++
		if attempts == 3 {
			go func() {
				n.want(map[string]string{"other": "2"})
				close(known)
			}()
		}
		if attempts == 4 {
			// Until the change is known.
			<-known
		}
		bad := rejectsAll(weftv1.Violation_REASON_KERNEL, "bad")(elements)
		if inForce == 0 && bad == nil && elements[publishtest.Element(family, table, set, "other")] == "2" {
			inForce = attempts
		}
		return bad
	})
	all := items(64, "2")
	all["k0001"] = "bad"
	n.want(all)
	await(t, "the refusal", func() bool { return n.left() == "k0001" && n.p.Outcome("other").State == InForce })
	await(t, "the end", func() bool { return n.backlog.Oldest().IsZero() })
	agg.Judge(nil)
	if inForce == 0 || inForce > 6 || attempts < 8 {
		t.Errorf("the other item was in force with attempt %d of %d", inForce, attempts)
	}
}

// TestLimitOfTheSum exceeds a limit of all items together: items that fit are in force, the
// others keep their value, and are tried again when there is room.
func TestLimitOfTheSum(t *testing.T) {
	agg, n := publishtest.New(t), newNames()
	agg.Judge(func(elements map[string]string) []*weftv1.Violation {
		sum := 0
		for _, v := range elements {
			sum += len(v)
		}
		if sum <= 20 {
			return nil
		}
		return []*weftv1.Violation{{Message: "more than 20", Reason: weftv1.Violation_REASON_LIMIT}}
	})
	n.keep = true
	run(t, n, agg)
	n.want(map[string]string{"a": "12345", "b": "12345"})
	await(t, "two items", func() bool { return n.p.Outcome("b").State == InForce })
	first := n.p.Outcome("b").Revision
	n.want(map[string]string{"b": "1234567890123456", "c": "1", "d": "12"})
	await(t, "those that fit", func() bool { return published(agg) == "a=12345 b=12345 c=1 d=12" && n.left() == "b" })
	if o := n.p.Outcome("b"); o.State != Refused || o.Revision != first || !strings.Contains(o.Reason.Error(), "more than 20") {
		t.Errorf("outcome %+v, want the old value since %d, and the reason", o, first)
	}
	n.want(map[string]string{"a": ""})
	await(t, "room", func() bool { return strings.Contains(published(agg), "b=1234567890123456") && n.left() == "" })
	n.want(map[string]string{"b": "12345678901234567890"})
	await(t, "no room", func() bool { return n.left() == "b" })
	n.want(map[string]string{"b": ""})
	await(t, "the removal of what was kept", func() bool { return published(agg) == "c=1 d=12" && n.left() == "" })
}

// TestPortions has large items among small ones in one batch: the small ones are in force first.
func TestPortions(t *testing.T) {
	agg, n := publishtest.New(t), newNames()
	n.portion = 10
	run(t, n, agg)
	await(t, "the empty snapshot", func() bool { return n.p.Status().Published })
	var updates []string
	agg.Judge(func(elements map[string]string) []*weftv1.Violation {
		updates = append(updates, fmt.Sprint(len(elements)))
		return nil
	})
	large := strings.Repeat("x", 50)
	n.want(map[string]string{"a": large, "b": "1", "c": "1", "d": large, "e": "1"})
	settled := func() int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.settled
	}
	await(t, "all", func() bool { return len(agg.Elements()) == 5 && settled() > 0 })
	agg.Judge(nil)
	publishtest.Equal(t, "items of the updates", strings.Join(updates, " "), "3 4 5")
	if n := settled(); n != 1 {
		t.Errorf("settled %d times, want once: when all are in force", n)
	}
}

// TestDivided has an item that needs several updates: it is in force with the last one. If one is
// rejected, nothing of the item stays, and the rest of it does not follow.
func TestDivided(t *testing.T) {
	agg, n := publishtest.New(t), newNames()
	n.portion, n.divides = 10, true
	run(t, n, agg)
	await(t, "the empty snapshot", func() bool { return n.p.Status().Published })
	var updates []string
	judge := func(most int) publishtest.Judge {
		return func(elements map[string]string) []*weftv1.Violation {
			object := publishtest.Element(family, table, set, "a")
			updates = append(updates, fmt.Sprint(len(elements[object])))
			if o := n.p.Outcome("a"); o.State == InForce {
				t.Error("a part of an item is said to be in force")
			}
			if len(elements[object]) <= most {
				return nil
			}
			return []*weftv1.Violation{{Object: nametest.Parse(object), Message: "no", Reason: weftv1.Violation_REASON_KERNEL}}
		}
	}
	agg.Judge(judge(25))
	n.want(map[string]string{"a": strings.Repeat("x", 35), "b": "1"})
	await(t, "the refusal", func() bool { return n.left() == "a" && n.backlog.Oldest().IsZero() })
	agg.Judge(nil)
	if got := strings.Join(updates, " "); got != "0 10 20 30 0" || published(agg) != "b=1" {
		t.Errorf("the updates have %s letters, want 0 10 20 30 0; %s is published", got, published(agg))
	}
	n.want(map[string]string{"a": ""})
	await(t, "the end of the item", func() bool { return n.left() == "" })
	updates = nil
	agg.Judge(judge(50))
	n.want(map[string]string{"a": strings.Repeat("x", 35)})
	await(t, "the item", func() bool { return n.p.Outcome("a").State == InForce && n.backlog.Oldest().IsZero() })
	agg.Judge(nil)
	publishtest.Equal(t, "letters of the updates", strings.Join(updates, " "), "10 20 30 35")
	updates = nil
	agg.Judge(judge(50))
	n.want(map[string]string{"a": ""})
	await(t, "its removal", func() bool { return published(agg) == "b=1" && n.backlog.Oldest().IsZero() })
	agg.Judge(nil)
	publishtest.Equal(t, "letters of the updates", strings.Join(updates, " "), "25 15 5 0")
	n.p.outcomes.mu.Lock()
	defer n.p.outcomes.mu.Unlock()
	if o, ok := n.p.outcomes.items["a"]; ok {
		t.Errorf("an item that was removed in parts is %+v", o)
	}
}
