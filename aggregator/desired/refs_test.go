package desired_test

import (
	"errors"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func TestDanglingReferences(t *testing.T) {
	tests := []struct {
		name   string
		table  desired.TableUpdate
		object string
		words  []string
	}{
		{"set", in(ipWeft, regular("c", rule("accept"), rule("ip saddr @s drop", "@s"))), "chain c rule 2", []string{"set s", "does not exist"}},
		{"chain", in(ipWeft, regular("c", rule("jump d", "d"))), "chain c rule 1", []string{"chain d", "does not exist"}},
		{"element", in(ipWeft, verdictMap("v", leads(dest("10.0.0.1", 6, 80), "pick"))), "map v element", []string{"chain pick", "does not exist"}},
		{"other table", in(ipDeny, regular("c", rule("jump there", "there"))), "chain c rule 1", []string{"ip deny"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t)
			h.commit(snapshot(services, 0, in(ipWeft, regular("there"))))
			err := h.Apply(snapshot(policy, 0, tt.table))
			var r *desired.Rejection
			if !errors.As(err, &r) || len(r.Violations) != 1 || r.Violations[0].Reason != desired.ReasonReference {
				t.Fatalf("Apply: %v, want one violation of a reference", err)
			}
			if got, want := r.Violations[0].Object.String(), "table "+tt.table.Table.String()+" "+tt.object; len(got) < len(want) || got[:len(want)] != want {
				t.Errorf("object %q, want %q", got, want)
			}
			h.reject(snapshot(policy, 0, tt.table), desired.ReasonReference, r.Violations[0].Object.String(), tt.words...)
			h.commit(snapshot(extra, 0, in(tt.table.Table, addrSet("s"), regular("d"), regular("pick"), regular("there"))), snapshot(policy, 0, tt.table))
		})
	}
}

func TestRemovalNamesDependents(t *testing.T) {
	h := newHarness(t)
	h.commit(
		snapshot(services, 0, in(ipWeft, addrSet("s"), regular("pick"), regular("other"))),
		snapshot(policy, 0, in(ipWeft, base("input", 0, rule("ip saddr @s drop", "@s")))),
		snapshot(extra, 0, in(ipWeft, verdictMap("v", leads(dest("10.0.0.1", 6, 80), "pick"), leads(dest("10.0.0.1", 6, 81), "pick")))),
	)
	h.reject(snapshot(services, 0, in(ipWeft, regular("pick"), regular("other"))), desired.ReasonReference, "table ip weft set s",
		"chain input rule 1 of fragment policy/web refers to it")
	h.reject(snapshot(services, 0, in(ipWeft, addrSet("s"))), desired.ReasonReference, "table ip weft chain pick",
		"map v element", "and 1 more", "fragment zeta/extra")
	tu := in(ipWeft)
	tu.DeleteChains, tu.DeleteSets = []string{"other"}, []string{"s"}
	h.reject(patch(services, tu), desired.ReasonReference, "table ip weft set s", "policy/web")
	if err := h.Apply(snapshot(services, 0)); err == nil {
		t.Error("withdrawal of what is in use was accepted")
	}
	// Once another fragment has the objects too, the first may go.
	h.commit(snapshot(extra, 0, in(ipWeft, addrSet("s"), regular("pick"))), snapshot(services, 0))
}

func TestReferenceToBaseChain(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, base("input", 0), regular("pick"))))
	h.reject(snapshot(policy, 0, in(ipWeft, regular("c", rule("jump input", "input")))), desired.ReasonInvalid, "table ip weft chain c rule 1", "base chain")
	h.commit(snapshot(policy, 0, in(ipWeft, regular("c", rule("jump pick", "pick")))))
	h.reject(snapshot(services, 0, in(ipWeft, base("pick", 0))), desired.ReasonInvalid, "table ip weft chain pick", "base chain", "policy/web")
}

func TestRedeclareInUse(t *testing.T) {
	h := newHarness(t)
	uses := rule("ip saddr @s drop", "@s")
	h.commit(
		snapshot(services, 0, in(ipWeft, addrSet("s", member("10.0.0.1")))),
		snapshot(policy, 0, in(ipWeft, base("input", 0, rule("first"), uses, rule("last")))),
	)
	// Other types: the rule that others compiled means nothing any more.
	other := desired.Set{Decl: &nftset.Set{Name: "s", Key: typeAddr6}}
	h.reject(snapshot(services, 0, in(ipWeft, other)), desired.ReasonConflict, "table ip weft set s", "key type ipv4_addr, not ipv6_addr", "policy/web")
	// Other flags: the set is made anew, and the rule beside it.
	tu := in(ipWeft, other)
	tu.DeleteSets = []string{"s"}
	h.reject(patch(services, tu), desired.ReasonConflict, "table ip weft set s", "policy/web")
	p := h.commit(snapshot(services, 0, in(ipWeft, withFlags(addrSet("s", member("10.0.0.1")), nftset.FlagTimeout))))
	want := "delete rule input\ndelete set s\nadd set s\nadd elements s 1\nadd rule input ip saddr @s drop\n"
	if got := planText(p); got != want {
		t.Errorf("plan:\n%s\nwant:\n%s", got, want)
	}
	// The new handle is the rule's from now on.
	h.commit(snapshot(policy, 0, in(ipWeft, base("input", 0, rule("first"), rule("last")))))
}

func TestDependentsAreBounded(t *testing.T) {
	h := newHarness(t)
	rules := make([]*compile.Rule, 10)
	for i := range rules {
		rules[i] = rule("saddr @s", "@s")
	}
	h.commit(snapshot(services, 0, in(ipWeft, addrSet("s"))), snapshot(policy, 0, in(ipWeft, base("input", 0, rules...))))
	h.reject(snapshot(services, 0), desired.ReasonReference, "table ip weft set s", "rule 4 of fragment", "and 6 more")
}
