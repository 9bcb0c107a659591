package explain

import (
	"net/netip"
	"testing"
)

func TestSentence(t *testing.T) {
	vip, one, two := netip.MustParseAddrPort("10.96.0.1:80"), netip.MustParseAddrPort("10.1.0.1:8080"), netip.MustParseAddrPort("10.1.0.2:8080")
	web := &Service{Name: "shop/web", Endpoints: []Endpoint{{Address: one}}}
	rule := []Step{{Rule: "drop", Handle: 7, Comment: "shop/db", Chain: "c", Table: "ip t", Owner: "policy/policies"}}
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
		{"a rule", nil, []Way{{Verdict: wordDrop, Steps: rule}}, `The packet is dropped by rule "drop" (shop/db) of chain c in table ip t, fragment policy/policies`},
		{"a policy of another program", nil, []Way{{Verdict: wordDrop, Steps: foreign}}, "The packet is dropped by the policy drop of chain c in table inet f, which is another program's"},
		{"no route", nil, []Way{{Verdict: wordDrop, Reason: "no route"}}, "The packet is dropped: no route"},
		{"a Service without endpoints", &Service{Name: "a/b"}, []Way{{Verdict: wordReject, Reason: "r"}}, "The packet is rejected: r; Service a/b has no endpoints"},
		{"a Service of which none is used", &Service{Name: "a/b", Endpoints: []Endpoint{{Excluded: "not ready"}}}, []Way{{Verdict: wordReject, Reason: "r"}}, "The packet is rejected: r; no endpoint of Service a/b is used: not ready"},
		{"some", web, []Way{{Verdict: wordAccept, To: one}, {Verdict: wordDrop, To: two}}, "It depends: 1 of 2 ways deliver the packet"},
		{"undecided", nil, []Way{{Verdict: wordUndecided, Reason: "x is not known"}}, "It cannot be decided: x is not known"},
		{"the reply", nil, []Way{{Verdict: wordAccept, To: vip, Reply: &Reply{Verdict: wordDrop, Reason: "no route"}}}, "The packet is delivered, but its reply is not: drop: no route"},
	} {
		a := &Answer{Packet: Packet{To: vip}, Service: tt.service, Ways: tt.ways}
		if got := sentence(a); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}
