package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/nft/kernel"
)

// plan plans fragments as publisher tester.
func plan(t *testing.T, d *aggregatortest.Daemon, req *weftv1.PlanRequest) *weftv1.PlanResponse {
	t.Helper()
	resp, err := d.Aggregator.Plan(aggregatortest.Context(t), "tester", req)
	must(t, err)
	return whole(resp)
}

// whole joins the parts of a plan.
func whole(parts iter.Seq[*weftv1.PlanResponse]) *weftv1.PlanResponse {
	all := &weftv1.PlanResponse{}
	for part := range parts {
		proto.Merge(all, part)
	}
	return all
}

// diffLines puts changes into lines as "weft plan" prints them.
func diffLines(resp *weftv1.PlanResponse) []string {
	var lines []string
	for _, c := range resp.GetChanges() {
		sign := map[weftv1.Change_Operation]string{
			weftv1.Change_OPERATION_ADD: "+", weftv1.Change_OPERATION_DELETE: "-", weftv1.Change_OPERATION_FLUSH: "0",
		}[c.GetOperation()]
		lines = append(lines, sign+" "+c.GetText())
	}
	return lines
}

// ruled is a fragment with rules in chain input of table demo.
func ruled(name string, rules ...string) *weftv1.Fragment {
	f := blocklist(name)
	f.Tables[0].Sets = nil
	f.Tables[0].Chains[0].Rules = nil
	for _, r := range rules {
		f.Tables[0].Chains[0].Rules = append(f.Tables[0].Chains[0].Rules, &weftv1.Rule{Text: r})
	}
	return f
}

func TestPlanDiff(t *testing.T) {
	verdicts := func(entries ...string) *weftv1.Fragment { return ports("ports", 0, entries...) }
	for _, tt := range []struct {
		name          string
		before, after []*weftv1.Fragment
		withdraw      []string
		want          []string
	}{
		{
			name: "a new table", after: []*weftv1.Fragment{blocklist("list", "10.0.0.1", "10.0.0.2")},
			want: []string{
				"+ table ip demo", "+ set ip demo blocked { type ipv4_addr; }",
				"+ chain ip demo input { type filter hook input priority 0; policy accept; }",
				"+ element ip demo blocked { 10.0.0.1 }", "+ element ip demo blocked { 10.0.0.2 }",
				"+ rule ip demo input ip saddr @blocked counter drop",
			},
		},
		{name: "the same again", before: []*weftv1.Fragment{blocklist("list", "10.0.0.1")}, after: []*weftv1.Fragment{blocklist("list", "10.0.0.1")}},
		{
			name: "elements", before: []*weftv1.Fragment{blocklist("list", "10.0.0.1", "10.0.0.2")}, after: []*weftv1.Fragment{blocklist("list", "10.0.0.2", "10.0.0.3")},
			want: []string{"- element ip demo blocked { 10.0.0.1 }", "+ element ip demo blocked { 10.0.0.3 }"},
		},
		{
			name: "a map's data", before: []*weftv1.Fragment{verdicts("80 : drop")}, after: []*weftv1.Fragment{verdicts("80 : accept")},
			want: []string{"- element ip demo ports { 80 : drop }", "+ element ip demo ports { 80 : accept }"},
		},
		{
			name:   "rules at their places",
			before: []*weftv1.Fragment{ruled("r", "tcp dport 1 accept", "tcp dport 2 accept", "tcp dport 3 accept")},
			after:  []*weftv1.Fragment{ruled("r", "udp dport 9 drop", "tcp dport 1 accept", "tcp dport 7 accept", "tcp dport 8 accept", "tcp dport 3 accept")},
			want: []string{
				"- rule ip demo input tcp dport 2 accept # handle 2", "+ rule ip demo input udp dport 9 drop # at the head",
				"+ rule ip demo input tcp dport 7 accept # after handle 1", "+ rule ip demo input tcp dport 8 accept",
			},
		},
		{
			name: "a withdrawal", before: []*weftv1.Fragment{blocklist("list", "10.0.0.1"), ruled("r", "tcp dport 1 accept")}, withdraw: []string{"list"},
			want: []string{"- rule ip demo input ip saddr @blocked counter drop # handle 1", "- set ip demo blocked"},
		},
		{
			name: "a map that goes", before: []*weftv1.Fragment{verdicts("80 : drop"), ruled("r", "tcp dport 1 accept")}, withdraw: []string{"ports"},
			want: []string{`- rule ip demo input tcp dport vmap @ports comment "of ports" # handle 1`, "0 map ip demo ports", "- map ip demo ports"},
		},
		{name: "the last of a table", before: []*weftv1.Fragment{blocklist("list")}, withdraw: []string{"list"}, want: []string{"- table ip demo"}},
		{
			name: "fragments that need each other", before: []*weftv1.Fragment{ruled("r", "tcp dport 1 accept")},
			after: []*weftv1.Fragment{blocklist("list"), ruled("user", "ip daddr @blocked accept")},
			want: []string{
				"+ set ip demo blocked { type ipv4_addr; }", "+ rule ip demo input ip saddr @blocked counter drop # at the head",
				"+ rule ip demo input ip daddr @blocked accept # after handle 1",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, d := inMemory(t)
			for _, f := range tt.before {
				applyAs(t, d, "tester", f)
			}
			before := k.String()
			req := &weftv1.PlanRequest{Fragments: tt.after}
			for _, name := range tt.withdraw {
				req.Withdraw = append(req.Withdraw, &weftv1.FragmentName{Name: name})
			}
			resp := plan(t, d, req)
			if diff := cmp.Diff(tt.want, diffLines(resp)); diff != "" || len(resp.GetRejections()) > 0 {
				t.Errorf("rejections %v, changes (-want +got):\n%s", resp.GetRejections(), diff)
			}
			if k.String() != before {
				t.Errorf("the plan changed the kernel:\n%s", k)
			}
			if resp.GetRevision() != d.Aggregator.Revision() {
				t.Errorf("the plan is made against revision %d: want %d", resp.GetRevision(), d.Aggregator.Revision())
			}
			if len(tt.after) == 1 && len(tt.want) > 0 {
				r := applyAs(t, d, "tester", tt.after[0])
				same(t, "counts of commit and plan", resp.GetCounts(), r.Changes)
			}
		})
	}
}

// TestPlanRejections has every judge refuse something, and the rest of the plan
// judged all the same.
func TestPlanRejections(t *testing.T) {
	k := &aggregatortest.Kernel{Refuse: func(op kernel.Op) (syscall.Errno, string) {
		if add, ok := op.(kernel.AddRule); ok && strings.Contains(add.Rule.Text, "dport 666") {
			return syscall.EOPNOTSUPP, "poison"
		}
		return 0, ""
	}}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	applyAs(t, d, "other", blocklist("list", "10.0.0.1"))
	conflict := blocklist("conflict")
	conflict.Tables[0].Sets[0].Type = "ipv6_addr"
	conflict.Tables[0].Chains = nil
	events := watch(t, d)
	resp := plan(t, d, &weftv1.PlanRequest{
		Withdraw: []*weftv1.FragmentName{{Name: "nothing"}},
		Fragments: []*weftv1.Fragment{
			ruled("typo", "tcp dprot 22 accept"), ruled("good", "tcp dport 22 accept"), conflict, ruled("poison", "tcp dport 666 drop"),
			ruled("dangling", "jump nowhere"), {Name: "Bad Name"}, ruled("poison-too", "udp dport 666 drop"),
		},
	})
	want := []string{
		"tester/nothing REASON_REFERENCE", "tester/typo REASON_INVALID", "tester/conflict REASON_CONFLICT", "tester/poison REASON_KERNEL",
		"tester/dangling REASON_REFERENCE", "tester/Bad Name REASON_INVALID", "tester/poison-too REASON_KERNEL",
	}
	var got []string
	for _, r := range resp.GetRejections() {
		got = append(got, r.GetFragment().Text()+" "+r.GetViolations()[0].GetReason().String())
	}
	same(t, "rejections", got, want)
	if len(resp.GetChanges()) > 0 || resp.GetCounts() != nil {
		t.Errorf("a plan with rejections has changes %v, counts %v", resp.GetChanges(), resp.GetCounts())
	}
	// No event is sent: the next event is that of the next commit.
	applyAs(t, d, "tester", ruled("good", "tcp dport 22 accept"))
	events.until(t, "the commit is the first event", func(e *weftv1.WatchResponse) bool {
		if e.GetRejection() != nil {
			t.Errorf("a plan was announced: %v", e)
		}
		return e.GetCommit() != nil
	})
	if fragments, _ := d.Aggregator.List(); len(fragments) != 2 || len(fragments[0].GetViolations()) > 0 {
		t.Errorf("the books have %v", fragments)
	}
}

// TestPlanUnattributed has the kernel refuse without a culprit.
func TestPlanUnattributed(t *testing.T) {
	k := &aggregatortest.Kernel{RefuseBatch: func(ops []kernel.Op) error {
		for _, op := range ops {
			if add, ok := op.(kernel.AddRule); ok && strings.Contains(add.Rule.Text, "dport 666") {
				return &kernel.BatchError{Index: -1, Element: -1, Errno: syscall.E2BIG}
			}
		}
		return nil
	}}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	var fragments []*weftv1.Fragment
	for i := range 9 {
		fragments = append(fragments, ruled(fmt.Sprintf("f%d", i), fmt.Sprintf("tcp dport %d accept", 660+2*i)))
	}
	resp := plan(t, d, &weftv1.PlanRequest{Fragments: fragments})
	if len(resp.GetRejections()) != 1 || resp.GetRejections()[0].GetFragment().Text() != "tester/f3" {
		t.Fatalf("rejections are %v: want that of f3", resp.GetRejections())
	}
}

func TestPlanShadows(t *testing.T) {
	_, d := inMemory(t)
	applyAs(t, d, "other", ports("first", -1, "22 : drop", "80 : accept"))
	applyAs(t, d, "other", ports("last", 9, "443 : drop"))
	resp := plan(t, d, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{
		ports("a", 1, "22 : accept", "80 : accept", "443 : accept", "8080 : drop"), ports("b", 2, "8080 : accept"),
	}})
	want := []*weftv1.Shadow{
		{Element: nametest.Parse("element ip demo ports { 22 }"), Winner: &weftv1.FragmentName{Publisher: "other", Name: "first"}, WinnerValue: "drop", Hidden: &weftv1.FragmentName{Publisher: "tester", Name: "a"}, HiddenValue: "accept"},
		{Element: nametest.Parse("element ip demo ports { 443 }"), Winner: &weftv1.FragmentName{Publisher: "tester", Name: "a"}, WinnerValue: "accept", Hidden: &weftv1.FragmentName{Publisher: "other", Name: "last"}, HiddenValue: "drop"},
		{Element: nametest.Parse("element ip demo ports { 8080 }"), Winner: &weftv1.FragmentName{Publisher: "tester", Name: "a"}, WinnerValue: "drop", Hidden: &weftv1.FragmentName{Publisher: "tester", Name: "b"}, HiddenValue: "accept"},
	}
	same(t, "shadows", resp.GetShadows(), want)
}

func TestPlanErrors(t *testing.T) {
	_, d := inMemory(t)
	ctx := aggregatortest.Context(t)
	if _, err := d.Aggregator.Plan(ctx, "Nobody!", &weftv1.PlanRequest{}); !errors.Is(err, aggregator.ErrInvalidName) {
		t.Errorf("error is %v: want ErrInvalidName", err)
	}
	if _, err := d.Aggregator.Plan(ctx, "tester", &weftv1.PlanRequest{Withdraw: make([]*weftv1.FragmentName, admission.MaxPlan+1)}); !errors.Is(err, aggregator.ErrProtocol) {
		t.Errorf("error is %v: want ErrProtocol", err)
	}
	if resp, err := d.Aggregator.Plan(ctx, "tester", &weftv1.PlanRequest{}); err != nil || len(whole(resp).GetChanges()) > 0 {
		t.Errorf("an empty plan is %v, error %v", resp, err)
	}
	must(t, d.Stop())
	if _, err := d.Aggregator.Plan(ctx, "tester", &weftv1.PlanRequest{}); !errors.Is(err, aggregator.ErrStopped) {
		t.Errorf("error is %v: want ErrStopped", err)
	}
}

// TestPlanRepairsFirst plans when the kernel is known to differ.
func TestPlanRepairsFirst(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Rate: 0.001, Burst: 1}})
	applyAs(t, d, "tester", blocklist("list", "10.0.0.1"))
	k.Flush()
	aggregatortest.Eventually(t, "the plan sees the table that was flushed", func() bool {
		return len(plan(t, d, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{blocklist("list", "10.0.0.2")}}).GetChanges()) == 2 &&
			len(k.Elements(demo, "blocked")) == 1
	})
}

// unwatched does not report what others change.
type unwatched struct{ *aggregatortest.Kernel }

func (unwatched) Watch(context.Context) (<-chan kernel.Event, error) { return nil, nil }

// TestPlanSuspectsTheKernelFirst has another program delete a table silently: what
// the kernel refuses then is not the fragment's fault.
func TestPlanSuspectsTheKernelFirst(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: unwatched{k}}})
	applyAs(t, d, "tester", blocklist("list", "10.0.0.1"))
	k.Flush()
	resp := plan(t, d, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{blocklist("list", "10.0.0.2")}})
	if len(resp.GetRejections()) > 0 || len(resp.GetChanges()) != 2 {
		t.Errorf("plan is %v: want two changes of elements", resp)
	}
	wantElements(t, k, "10.0.0.1")
}

// TestKernelPlan plans against the real kernel: what it refuses, and that
// nothing else happens, with ownership and without.
func TestKernelPlan(t *testing.T) {
	for name, noOwner := range map[string]bool{"owner": false, "fallback": true} {
		t.Run(name, func(t *testing.T) {
			ns, d, conn := onKernel(t, aggregator.Config{}, noOwner)
			applyAs(t, d, "tester", counted("127.0.0.1"))
			sendUDP(t, ns, 3)
			list := func() string { return ns.Run(t, "nft", "-a", "list", "ruleset") }
			before := list()
			gen, err := conn.Generation()
			must(t, err)
			full := blocklist("full", "10.0.0.1", "10.0.0.2", "10.0.0.3")
			full.Tables[0].Sets[0].Name, full.Tables[0].Sets[0].Size, full.Tables[0].Chains = "small", 2, nil
			loop := &weftv1.Fragment{Name: "loop", Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Chains: []*weftv1.Chain{
				{Name: "input", Type: "filter", Hook: "input", Priority: "filter", Rules: []*weftv1.Rule{{Text: "jump here"}}},
				{Name: "here", Rules: []*weftv1.Rule{{Text: "jump there"}}},
				{Name: "there", Rules: []*weftv1.Rule{{Text: "jump here"}}},
			}}}}
			change := counted("127.0.0.2")
			change.Tables[0].Chains[0].Rules[1].Text = "ip protocol udp accept"
			resp := plan(t, d, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{change, full, loop}})
			var refused []string
			for _, r := range resp.GetRejections() {
				refused = append(refused, r.GetFragment().Text()+" "+r.GetViolations()[0].GetReason().String())
			}
			same(t, "rejections", refused, []string{"tester/full REASON_KERNEL", "tester/loop REASON_KERNEL"})
			resp = plan(t, d, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{change}})
			if len(resp.GetChanges()) != 4 || len(resp.GetRejections()) > 0 {
				t.Errorf("plan is %v: want two changes of elements and two of rules", resp)
			}
			same(t, "the ruleset", list(), before)
			if now, err := conn.Generation(); err != nil || now != gen {
				t.Errorf("generation is %d, %v: want %d", now, err, gen)
			}
			r := applyAs(t, d, "tester", change)
			same(t, "counts of commit and plan", resp.GetCounts(), r.Changes)
		})
	}
}
