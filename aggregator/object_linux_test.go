package aggregator_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// withObjects is a fragment whose rules in a chain of its own use objects.
func withObjects(name string, objects []*weftv1.Object, rules ...string) *weftv1.Fragment {
	c := &weftv1.Chain{Name: name, Type: "filter", Hook: "output", Priority: "filter"}
	for _, text := range rules {
		c.Rules = append(c.Rules, &weftv1.Rule{Text: text})
	}
	return &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Objects: objects, Chains: []*weftv1.Chain{c}}}}
}

func object(kind, name, text string) *weftv1.Object {
	return &weftv1.Object{Kind: kind, Name: name, Text: text}
}

// countedBy returns what "nft list counter" says of a counter of table ip demo.
func countedBy(t *testing.T, ns *nfttest.NS, name string) string {
	t.Helper()
	out := ns.Run(t, "nft", "list", "counter", "ip", "demo", name)
	_, out, _ = strings.Cut(out, "counter "+name+" {")
	out, _, _ = strings.Cut(out, "}")
	return strings.Join(strings.Fields(out), " ")
}

// refusedFor applies what must be refused, and returns the first violation.
func refusedFor(t *testing.T, c *client.Client, f *weftv1.Fragment, reason weftv1.Violation_Reason, text string) {
	t.Helper()
	_, err := c.Apply(aggregatortest.Context(t), f)
	var r *client.RejectedError
	if !errors.As(err, &r) || r.Violations[0].GetReason() != reason || !strings.Contains(r.Violations[0].GetObject().Text()+": "+r.Violations[0].GetMessage(), text) {
		t.Fatalf("apply %s: %v: want %s and %q", f.GetName(), err, reason, text)
	}
}

// TestKernelObjectsAreShared has two publishers share a counter and disagree on a
// limit: the counter counts for both and goes with the last of them.
func TestKernelObjectsAreShared(t *testing.T) {
	ns, d, _ := onKernel(t, aggregator.Config{}, false)
	one, two := d.Dial(t, "one"), d.Dial(t, "two")
	hits := object("counter", "hits", "")
	refusedFor(t, one, withObjects("a", nil, "counter name hits"), weftv1.Violation_REASON_REFERENCE, "rule ip demo a #1: refers to counter hits, which does not exist")
	mustApply(t, one, withObjects("a", []*weftv1.Object{hits, object("limit", "slow", "rate 10/second")}, "udp dport 9 counter name hits"))
	mustApply(t, two, withObjects("b", []*weftv1.Object{object("counter", "hits", "packets 7 bytes 70")}, "udp dport 9 counter name hits"))
	sendUDP(t, ns, 1)
	if got := countedBy(t, ns, "hits"); !strings.HasPrefix(got, "packets 2 ") {
		t.Errorf("the counter of both has %s, want 2 packets", got)
	}
	refusedFor(t, two, withObjects("b", []*weftv1.Object{hits, object("limit", "slow", "rate 20/second")}, "udp dport 9 counter name hits"),
		weftv1.Violation_REASON_CONFLICT, "limit ip demo slow: declaration of limit slow contradicts that of fragment one/a ({ rate 10/second }, not { rate 20/second })")
	// Of two that declare it one may go, and what it had counted stays.
	mustApply(t, one, withObjects("a", nil, "udp dport 9 counter name hits"))
	if got := countedBy(t, ns, "hits"); !strings.HasPrefix(got, "packets 2 ") {
		t.Errorf("the counter has %s after one has left it, want 2 packets", got)
	}
	refusedFor(t, two, withObjects("b", nil), weftv1.Violation_REASON_REFERENCE, "counter hits is still in use: chain a rule 1 of fragment one/a refers to it")
	ctx := aggregatortest.Context(t)
	table, err := d.Dial(t, "three").GetTable(ctx, &weftv1.GetTableRequest{Family: "ip", Name: "demo", Terse: true})
	if err != nil || len(table.GetObjects()) != 1 || table.GetObjects()[0].GetFragments()[0].Text() != "two/b" || table.GetStatus().GetObjects() != 1 {
		t.Errorf("merged table %v, %v", table, err)
	}
	owner, err := one.Owner(ctx, &weftv1.OwnerRequest{Object: nametest.Parse("counter ip demo hits")})
	if err != nil || len(owner.GetOwners()) != 1 || owner.GetOwners()[0].GetFragment().GetPublisher() != "two" || !strings.HasPrefix(owner.GetOwners()[0].GetText(), "counter ip demo hits") {
		t.Errorf("owner %v, %v", owner, err)
	}
	if _, err := one.Owner(ctx, &weftv1.OwnerRequest{Object: nametest.Parse("quota ip demo hits")}); err == nil || !strings.Contains(err.Error(), "weft has no quota ip demo hits") {
		t.Errorf("owner of a quota that is not there: %v", err)
	}
	mustApply(t, one, withObjects("a", nil))
	mustApply(t, two, withObjects("b", nil))
	if text := ns.ListRuleset(t); strings.Contains(text, "counter") || strings.Contains(text, "limit") {
		t.Errorf("objects are left:\n%s", text)
	}
}

// TestKernelObjectsChange changes declarations: what refers to one that changes is
// made anew with it, and what counts keeps what it has.
func TestKernelObjectsChange(t *testing.T) {
	ns, d, _ := onKernel(t, aggregator.Config{}, false)
	c := d.Dial(t, "tester")
	f := func(rate, ports string) *weftv1.Fragment {
		return withObjects("f", []*weftv1.Object{
			object("limit", "slow", rate), object("counter", "hits", "packets 0 bytes 0"), object("quota", "most", "over 25 mbytes"),
			object("ct helper", "ftp", `type "ftp" protocol tcp; l3proto ip`), object("ct timeout", "short", "protocol tcp; l3proto ip; policy = { established : 120 }"),
		}, "udp dport "+ports+" counter name hits", `udp dport 10 limit name "slow" accept`, `quota name "most" drop`, `tcp dport 21 ct helper set "ftp"`, `ct timeout set "short"`)
	}
	mustApply(t, c, f("rate 10/second", "9"))
	sendUDP(t, ns, 1)
	before := ruleLine(t, ns, "counter name")
	mustApply(t, c, f("rate 20/second", "9"))
	text := ns.ListRuleset(t)
	if !strings.Contains(text, "rate 20/second") || !strings.Contains(text, `limit name "slow"`) || strings.Contains(text, "rate 10/second") {
		t.Errorf("after the change of the limit:\n%s", text)
	}
	same(t, "a rule that does not use the limit", ruleLine(t, ns, "counter name"), before)
	mustApply(t, c, f("rate 20/second", "{ 9, 99 }"))
	if got := countedBy(t, ns, "hits"); !strings.HasPrefix(got, "packets 1 ") {
		t.Errorf("the counter has %s, want 1 packet", got)
	}
	// Nothing differs: no commit.
	plan, err := c.Plan(aggregatortest.Context(t), &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{f("rate 20/second", "{ 9, 99 }")}})
	if err != nil || len(plan.GetChanges())+len(plan.GetRejections()) > 0 {
		t.Errorf("the same again changes %v, %v", plan, err)
	}
	got, err := c.Get(aggregatortest.Context(t), "", "f")
	if err != nil || len(got.GetFragment().GetTables()[0].GetObjects()) != 5 || got.GetStatus().GetObjects() != 5 {
		t.Errorf("fragment %v, %v", got, err)
	}
}

// TestKernelObjectMaps has a map lead to counters that come and go by patches.
func TestKernelObjectMaps(t *testing.T) {
	ns, d, _ := onKernel(t, aggregator.Config{}, false)
	c := d.Dial(t, "tester")
	ctx := aggregatortest.Context(t)
	f := withObjects("f", []*weftv1.Object{object("counter", "web", ""), object("counter", "dns", "")}, "counter name udp dport map @ports")
	f.Tables[0].Maps = []*weftv1.Set{{Name: "ports", Type: "inet_service : counter", Elements: []*weftv1.Element{{Key: "9", Value: "web"}, {Key: "53", Value: "dns"}}}}
	s := session(t, c, func(string) *weftv1.Fragment { return f })
	must(t, errorOf(s.Put(ctx, f)))
	sendUDP(t, ns, 1)
	if got := countedBy(t, ns, "web"); !strings.HasPrefix(got, "packets 1 ") {
		t.Errorf("counter web has %s, want 1 packet", got)
	}
	change := func(m *weftv1.TablePatch) error {
		m.Family, m.Name = "ip", "demo"
		_, err := s.Patch(ctx, &weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{m}})
		return err
	}
	web, other := []*weftv1.ObjectReference{{Kind: "counter", Name: "web"}}, []*weftv1.ObjectReference{{Kind: "counter", Name: "other"}}
	if err := change(&weftv1.TablePatch{
		DeleteObjects: web, PutObjects: []*weftv1.Object{object("counter", "other", "")},
		Elements: []*weftv1.ElementPatch{{Set: "ports", Add: []*weftv1.Element{{Key: "9", Value: "other"}}}},
	}); err != nil {
		t.Fatal(err)
	}
	sendUDP(t, ns, 1)
	if got := countedBy(t, ns, "other"); !strings.HasPrefix(got, "packets 1 ") {
		t.Errorf("counter other has %s, want 1 packet", got)
	}
	if text := ns.ListRuleset(t); strings.Contains(text, "counter web") {
		t.Errorf("counter web is left:\n%s", text)
	}
	err := change(&weftv1.TablePatch{DeleteObjects: other})
	var r *client.RejectedError
	if !errors.As(err, &r) || !strings.Contains(r.Violations[0].GetMessage(), "refers to counter other, which does not exist") || r.Violations[0].GetObject().Text() != "element ip demo ports { 9 }" {
		t.Errorf("delete a counter in use: %v", err)
	}
	must(t, errorOf(s.Withdraw(ctx, "f")))
	same(t, "what is left", ns.ListRuleset(t), "")
}

// sortedLines makes listings comparable: objects come in the order of their creation.
func sortedLines(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestKernelObjectsSurviveARestart keeps what is counted over a restart, and while
// another hand breaks things.
func TestKernelObjectsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	objects := []*weftv1.Object{object("counter", "hits", ""), object("quota", "most", "over 25 mbytes"), object("counter", "idle", "")}
	f := withObjects("f", objects, "udp dport 9 counter name hits", `quota name "most" drop`)
	f.Tables[0].Flags = []string{"dormant"}
	ns, d, conn := onKernel(t, aggregator.Config{StateDir: dir}, true)
	mustApply(t, d.Dial(t, "tester"), f)
	sendUDP(t, ns, 1)
	if got := countedBy(t, ns, "hits"); !strings.HasPrefix(got, "packets 0 ") {
		t.Errorf("a dormant table has counted %s", got)
	}
	f.Tables[0].Flags = nil
	mustApply(t, d.Dial(t, "tester"), f)
	sendUDP(t, ns, 1)
	before := ns.ListRuleset(t)
	if got := countedBy(t, ns, "hits"); !strings.HasPrefix(got, "packets 1 ") {
		t.Fatalf("counted %s", got)
	}
	_, _ = d.Stop(), conn.Close()
	d, _ = startKernel(t, ns, aggregator.Config{StateDir: dir}, true)
	c := d.Dial(t, "tester")
	same(t, "after the restart", ns.ListRuleset(t), before)
	refusedFor(t, d.Dial(t, "other"), withObjects("g", []*weftv1.Object{object("quota", "most", "over 1 mbytes")}), weftv1.Violation_REASON_CONFLICT,
		"contradicts that of fragment tester/f (committed before the restart")
	mustApply(t, c, f)
	same(t, "when its publisher is back", ns.ListRuleset(t), before)
	for _, text := range []string{
		"delete counter ip demo idle",
		"add counter ip demo theirs; add limit ip demo odd { rate 1/second; }",
		"delete counter ip demo idle; add counter ip demo idle { comment \"theirs\"; }",
		"add table ip demo { flags dormant; }",
	} {
		ns.Nft(t, text)
		aggregatortest.Eventually(t, "this is repaired: "+text, func() bool { return sortedLines(ns.ListRuleset(t)) == sortedLines(before) })
	}
}

// TestKernelDormant puts a table to sleep and wakes it, together with changes of its
// base chains: while one of two publishers wants it, it sleeps.
func TestKernelDormant(t *testing.T) {
	for _, noOwner := range []bool{false, true} {
		ns, d, _ := onKernel(t, aggregator.Config{}, noOwner)
		one, two := d.Dial(t, "one"), d.Dial(t, "two")
		f := func(name string, flags ...string) *weftv1.Fragment {
			f := withObjects(name, []*weftv1.Object{object("counter", "hits", "")}, "counter name hits")
			f.Tables[0].Flags = flags
			return f
		}
		refusedFor(t, one, f("a", "offload"), weftv1.Violation_REASON_INVALID, `table ip demo: unknown table flag "offload"`)
		mustApply(t, one, f("a"))
		for i, step := range []struct {
			c     *client.Client
			f     *weftv1.Fragment
			sleep bool
		}{
			{one, f("a", "dormant"), true},
			{two, f("b"), true},
			{one, f("a"), false},
			{two, f("b", "dormant"), true},
			{two, f("c", "dormant"), true},
			{two, &weftv1.Fragment{Name: "b"}, true},
			{two, &weftv1.Fragment{Name: "c"}, false},
		} {
			mustApply(t, step.c, step.f)
			if text := ns.ListRuleset(t); strings.Contains(text, "dormant") != step.sleep {
				t.Errorf("step %d, without ownership %t: the table is\n%s", i+1, noOwner, text)
			}
		}
	}
}

// TestKernelElementStates gives elements statements and what is left of their time:
// what they count is theirs over updates and a restart.
func TestKernelElementStates(t *testing.T) {
	dir := t.TempDir()
	f := func(more ...*weftv1.Element) *weftv1.Fragment {
		f := withObjects("f", nil, "udp dport @ports")
		f.Tables[0].Sets = []*weftv1.Set{
			{Name: "ports", Type: "inet_service", Stateful: []string{"counter"}, Elements: append(more,
				&weftv1.Element{Key: "9"}, &weftv1.Element{Key: "10", State: &weftv1.ElementState{Stateful: []string{"counter packets 5 bytes 500"}}})},
			{Name: "timed", Type: "inet_service", Flags: []string{"timeout"}, Elements: []*weftv1.Element{
				{Key: "1", Timeout: durationpb.New(time.Hour), State: &weftv1.ElementState{Expires: durationpb.New(30 * time.Minute)}}}},
		}
		return f
	}
	ns, d, conn := onKernel(t, aggregator.Config{StateDir: dir}, false)
	c := d.Dial(t, "tester")
	mustApply(t, c, f())
	sendUDP(t, ns, 1)
	check := func(when string) {
		t.Helper()
		text := ns.ListRuleset(t)
		for _, want := range []string{"9 counter packets 1 ", "10 counter packets 5 bytes 500", "timeout 1h expires 29m"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", when, want, text)
			}
		}
	}
	check("at first")
	mustApply(t, c, f(&weftv1.Element{Key: "11"}))
	check("after another element")
	got, err := c.Get(aggregatortest.Context(t), "", "f")
	must(t, err)
	if e := got.GetFragment().GetTables()[0].GetSets()[0].GetElements(); len(e) != 3 || e[0].GetState() != nil || e[1].GetState().GetStateful()[0] != "counter packets 5 bytes 500" {
		t.Errorf("elements %v", e)
	}
	if e := got.GetFragment().GetTables()[0].GetSets()[1].GetElements()[0]; e.GetState().GetExpires().AsDuration() != 30*time.Minute {
		t.Errorf("element %v", e)
	}
	_, _ = d.Stop(), conn.Close()
	d, _ = startKernel(t, ns, aggregator.Config{StateDir: dir}, false)
	c = d.Dial(t, "tester")
	check("after a restart")
	plan, err := c.Plan(aggregatortest.Context(t), &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{f(&weftv1.Element{Key: "11"})}})
	if err != nil || len(plan.GetChanges()) != 1 || plan.GetChanges()[0].GetObject().GetName() != "timed" {
		t.Errorf("plan after the restart, which renews one element: %v, %v", plan, err)
	}
	mustApply(t, c, f(&weftv1.Element{Key: "11"}))
	check("when the publisher is back")
	refusedFor(t, c, withState("quota over 1 mbytes"), weftv1.Violation_REASON_INVALID, `element ip demo ports { 9 }: pack element "9" of set ports: statement "quota`)
}

// withState is a fragment with a statement that its set does not have.
func withState(statement string) *weftv1.Fragment {
	f := withObjects("g", nil)
	f.Tables[0].Sets = []*weftv1.Set{{Name: "ports", Type: "inet_service", Stateful: []string{"counter"}, Elements: []*weftv1.Element{
		{Key: "9", State: &weftv1.ElementState{Stateful: []string{statement}}}}}}
	return f
}
