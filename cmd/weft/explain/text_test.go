package explain

import (
	"net/netip"
	"testing"
)

func TestSentence(t *testing.T) {
	vip, one, two := netip.MustParseAddrPort("10.96.0.1:80"), netip.MustParseAddrPort("10.1.0.1:8080"), netip.MustParseAddrPort("10.1.0.2:8080")
	web := &Service{Name: "shop/web", Endpoints: []Endpoint{{Address: one}}}
	empty := &Service{Name: "shop/empty"}
	rejected := []Step{{Rule: `counter name "dropped-no-endpoints" reject`, Handle: 7, Chain: "reject-chain", Table: "ip weft", Owner: "services/services"}}
	rule := []Step{{Rule: "drop", Handle: 7, Comment: "no db", Chain: "c", Table: "ip t", Owner: "team/web"}}
	foreign := []Step{{Rule: "policy drop", Chain: "c", Table: "inet f", Foreign: true}}
	for _, tt := range []struct {
		name    string
		service *Service
		ways    []Way
		want    string
	}{
		{"an address", nil, []Way{{Verdict: wordAccept, To: vip}}, "The packet is delivered"},
		{"one endpoint", web, []Way{{Verdict: wordAccept, To: one}}, "The packet is delivered to the endpoint 10.1.0.1:8080 of Service shop/web"},
		{"two endpoints", web, []Way{{Verdict: wordAccept, To: one}, {Verdict: wordAccept, To: two}}, "The packet is delivered to one of 2 endpoints of Service shop/web"},
		{"a NodePort on a loopback address", &Service{Name: "shop/web", How: howLoopback, Endpoints: web.Endpoints}, []Way{{Verdict: wordAccept, To: vip}},
			"The packet is delivered on this node, which no rule changes: if nodePortAddresses has loopback addresses, a listener of weft passes TCP on to an endpoint"},
		{"a rule of a fragment", nil, []Way{{Verdict: wordDrop, Steps: rule}}, "Dropped: fragment team/web does not let it pass: no db. `weft get fragment team/web` shows its rules"},
		{"a policy of another program", nil, []Way{{Verdict: wordDrop, Steps: foreign}}, "Dropped: another program does not let it pass. Have that program accept it: an accept in weft's tables does not help"},
		{"no route", nil, []Way{{Verdict: wordDrop, Reason: "no route"}}, "Dropped: no route"},
		{"a Service without endpoints", empty, []Way{{Verdict: wordReject, Steps: rejected}}, "Rejected: Service shop/empty has no endpoints. Look at its selector and its pods"},
		{"a Service that is not known", nil, []Way{{Verdict: wordReject, Steps: rejected}}, "Rejected: the Service has no endpoints. Look at its selector and its pods"},
		{"a Service of which none is used", &Service{Name: "a/b", Endpoints: []Endpoint{{Excluded: "not ready"}}}, []Way{{Verdict: wordReject, Steps: rejected}}, "Rejected: no endpoint of Service a/b is used: not ready. Look at its selector and its pods"},
		{"a Service without endpoints, and no route", empty, []Way{{Verdict: wordDrop, Reason: "no route"}}, "Dropped: no route. Service shop/empty has no endpoints"},
		{"some", web, []Way{{Verdict: wordAccept, To: one}, {Verdict: wordDrop, To: two}}, "It depends: 1 of 2 ways deliver the packet"},
		{"undecided", nil, []Way{{Verdict: wordUndecided, Reason: "x is not known"}}, "It cannot be decided: x is not known"},
		{"the reply", nil, []Way{{Verdict: wordAccept, To: vip, Reply: &Way{Verdict: wordDrop, Reason: "no route"}}}, "The packet is delivered, but its reply is not. Dropped: no route"},
	} {
		a := &Answer{Packet: Packet{To: vip}, Service: tt.service, Ways: tt.ways}
		if got := sentence(a); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// TestPlace names rules: by their words, by their handles if they have none, and policies.
func TestPlace(t *testing.T) {
	for want, s := range map[string]Step{
		`rule "drop" (no db) of chain c in table ip t, fragment team/web`:      {Rule: "drop", Handle: 7, Comment: "no db", Chain: "c", Table: "ip t", Owner: "team/web"},
		"handle 7 of chain c in table ip t, which is another program's":        {Rule: "handle 7", Handle: 7, Chain: "c", Table: "ip t", Foreign: true},
		"the policy drop of chain c in table ip t, which is another program's": {Rule: "policy drop", Chain: "c", Table: "ip t", Foreign: true},
	} {
		if got := s.Place(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestDenied reads the comments of policies' rules.
func TestDenied(t *testing.T) {
	for comment, want := range map[string]string{
		"shop/cart-clients ingress":       "no rule of policy shop/cart-clients allows it (ingress)",
		"a/b, a/c egress":                 "no rule of policy a/b, a/c allows it (egress)",
		`admin/x ingress[0] "no ingress"`: `rule ingress[0] "no ingress" of policy admin/x denies it`,
		"admin/x egress is left out":      "policy admin/x is left out, and so denies all egress of its pods",
		"something":                       "policy something denies it",
	} {
		if got, _ := denied(comment); got != want {
			t.Errorf("%s: got %s, want %s", comment, got, want)
		}
	}
}
