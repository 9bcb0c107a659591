package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// TestSelectorOfNothing: a rule that names a set appears with the first member of the set, in all
// policies that name it, and stays. A policy that is gone does not wait for members.
func TestSelectorOfNothing(t *testing.T) {
	f := newFixture(t)
	set := f.set("late")
	rules := []model.Rule{{Pods: []model.SetID{set}, AllPorts: true}}
	for _, name := range []string{"a", "b", "gone"} {
		f.policy("shop/"+name, rules, nil)
		f.pod("shop/"+name, fmt.Sprintf("10.0.0.%d", 1+len(f.pods)), []string{"shop/" + name}, nil)
	}
	named := func() int { return strings.Count(fmt.Sprint(f.r.Snapshot()), "@sel-") }
	f.finish()
	if n := named(); n != 0 {
		t.Errorf("%d rules name a set without members", n)
	}
	delete(f.policies, policyID("shop/gone"))
	delete(f.pods, "shop/gone")
	f.finish()
	if o := f.r.tables[0].sets[set]; len(o.members.waiting) != 2 {
		t.Errorf("%v wait for members", o.members.waiting)
	}
	f.set("late", "10.0.0.9")
	f.finish()
	f.compare()
	if n := named(); n != 2 {
		t.Errorf("with a member %d rules name the set, want 2", n)
	}
	f.set("late")
	f.finish()
	f.compare()
	if n := named(); n != 2 {
		t.Errorf("after the last member has gone %d rules name the set, want 2", n)
	}
}

// TestTooLargeWithoutMembers: a policy that has too many rules once its sets have members is left
// out before.
func TestTooLargeWithoutMembers(t *testing.T) {
	f := newFixture(t)
	set := f.set("none")
	var rules []model.Rule
	for i := range maxRules + 1 {
		rules = append(rules, model.Rule{Pods: []model.SetID{set}, Ports: ports(fmt.Sprintf("tcp %d-65000", i+1))})
	}
	f.policy("shop/large", rules, nil)
	f.pod("shop/db", "10.0.0.1", []string{"shop/large"}, nil)
	f.finish()
	if got := fmt.Sprint(f.r.LeftOut()[policyID("shop/large")]); !strings.Contains(got, fmt.Sprintf("%d rules that cannot be joined", maxRules+1)) {
		t.Errorf("it is left out: %s", got)
	}
}
