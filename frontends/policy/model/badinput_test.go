package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// TestBadPolicies has policies with an invalid part each. The pod is isolated by it, another
// policy is in force, and the rest of the policy too. The problem is named.
//
// Policy behaviour: 21, 52.
func TestBadPolicies(t *testing.T) {
	const (
		good = "{from: [{ipBlock: {cidr: 192.0.2.0/24}}]}"
		a, b = "192.0.2.1 > 10.0.0.1 tcp/80", "10.0.0.2 > 10.0.0.1 tcp/80"
		c    = "198.51.100.1 > 10.0.0.1 tcp/80"
		d    = "10.0.0.2 > 10.0.0.3 tcp/80"
	)
	for name, tt := range map[string]struct{ rules, want, problem string }{
		"prefix":             {"{from: [{ipBlock: {cidr: 198.51.100.0/33}}]}", "+---", "spec.ingress[0].from[0]: parse prefix"},
		"except":             {"{from: [{ipBlock: {cidr: 198.51.100.0/24, except: [x]}}]}", "+---", "spec.ingress[0].from[0]: parse prefix"},
		"family of except":   {"{from: [{ipBlock: {cidr: 198.51.100.0/24, except: ['fd00::/64']}}]}", "+---", "not of the same family"},
		"no peer":            {"{from: [{}]}", "+---", "neither podSelector"},
		"mixed peer":         {"{from: [{podSelector: {}, ipBlock: {cidr: 198.51.100.0/24}}]}", "+---", "an ipBlock and a selector"},
		"operator":           {"{from: [{podSelector: {matchExpressions: [{key: a, operator: Like}]}}]}", "+---", "from[0].podSelector.matchExpressions[0]: unknown operator"},
		"no values":          {"{from: [{namespaceSelector: {matchExpressions: [{key: a, operator: NotIn}]}}]}", "+---", "NotIn has no values"},
		"values of Exists":   {"{from: [{podSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}]}", "+---", "Exists has values"},
		"no key":             {"{from: [{podSelector: {matchExpressions: [{operator: Exists}]}}]}", "+---", "has no key"},
		"key of a label":     {"{from: [{podSelector: {matchLabels: {'a b': c}}}]}", "+---", "from[0].podSelector.matchLabels: label \"a b\": name part must consist of"},
		"value of a label":   {"{from: [{namespaceSelector: {matchLabels: {a: 'b c'}}}]}", "+---", "value \"b c\" of label \"a\": a valid label must"},
		"key":                {"{from: [{podSelector: {matchExpressions: [{key: -a, operator: DoesNotExist}]}}]}", "+---", "matchExpressions[0]: label \"-a\""},
		"port 0":             {"{ports: [{port: 0}]}", "+---", "spec.ingress[0].ports[0]: port 0 is not in 1 to 65535"},
		"port 65536":         {"{ports: [{port: 70, endPort: 65536}]}", "+---", "port 65536"},
		"order":              {"{ports: [{port: 81, endPort: 79}]}", "+---", "lower than the first"},
		"endPort of a name":  {"{ports: [{port: http, endPort: 81}]}", "+---", "cannot be used with a named port"},
		"endPort of nothing": {"{ports: [{endPort: 81}]}", "+---", "cannot be used without port"},
		"protocol":           {"{ports: [{protocol: ICMP}]}", "+---", "unknown protocol"},
		"empty name":         {"{ports: [{port: ''}]}", "+---", "name of the port is empty"},
		"the good part":      {"{from: [{}, {ipBlock: {cidr: 198.51.100.0/24}}], ports: [{port: 0}, {port: 80}]}", "+-+-", "neither podSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pod("a 10.0.0.1 app=a"), pod("b 10.0.0.2 app=b"), pod("c 10.0.0.3 app=c"),
				policy("bad", "podSelector: {matchLabels: {app: a}}, ingress: ["+tt.rules+", "+good+"]"), policy("good", "podSelector: {matchLabels: {app: c}}"))
			w.expect(tt.want, a, b, c, d)
			if len(w.notices) != 1 || w.notices[0].Reason != model.InvalidPolicy || w.notices[0].Name.Name != "bad" ||
				w.notices[0].Kind != "NetworkPolicy" || !strings.Contains(w.notices[0].Message, tt.problem) || !w.notices[0].Reporter {
				t.Errorf("notices %+v, want one with %q", w.notices, tt.problem)
			}
			problems := w.model.Snapshot().Policies[0].Problems
			if !strings.Contains(strings.Join(problems, "\n"), tt.problem) {
				t.Errorf("problems %q, want %q", problems, tt.problem)
			}
			// The same again is not news.
			w.set(policy("bad", "podSelector: {matchLabels: {app: a}}, ingress: ["+tt.rules+", "+good+"]"))
			if len(w.notices) != 1 {
				t.Errorf("%d notices after the same object, want 1", len(w.notices))
			}
		})
	}
}

// TestBadSubjects has policies of which it is not known which pods they are for.
//
// Policy behaviour: 21, 52.
func TestBadSubjects(t *testing.T) {
	const in, out = "10.0.0.2 > 10.0.0.1 tcp/80", "10.0.0.1 > 10.0.0.2 tcp/80"
	for name, tt := range map[string]struct {
		object, want string
		reported     bool
	}{
		"an unknown requirement isolates":    {policy("p", "podSelector: {matchExpressions: [{key: app, operator: Like}]}, ingress: [{}]"), "--", true},
		"the rest of the selector counts":    {policy("p", "podSelector: {matchLabels: {app: x}, matchExpressions: [{key: app, operator: Like}]}, ingress: [{}]"), "++", false},
		"a value that no label can have":     {policy("p", "podSelector: {matchLabels: {app: 'a b'}}, ingress: [{}]"), "--", true},
		"its other labels count":             {policy("p", "podSelector: {matchLabels: {app: x, b: 'a b'}}, ingress: [{}]"), "++", false},
		"such a value in an expression":      {policy("p", "podSelector: {matchExpressions: [{key: app, operator: In, values: ['a b']}]}"), "++", false},
		"not such a value":                   {policy("p", "podSelector: {matchExpressions: [{key: app, operator: NotIn, values: ['a b']}]}"), "--", false},
		"an unknown type":                    {policy("p", "podSelector: {}, policyTypes: [Sideways], egress: []"), "--", true},
		"an unknown tier":                    {clusterPolicy("p", "Middle", 1, "ingress: [{action: Deny, from: [{namespaces: {}}]}]"), "++", true},
		"a subject of nothing":               {"ClusterNetworkPolicy p {spec: {tier: Admin, priority: 1, subject: {}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}}", "++", true},
		"a subject with an invalid operator": {"ClusterNetworkPolicy p {spec: {tier: Admin, priority: 1, subject: {namespaces: {matchExpressions: [{key: a, operator: Like}]}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}}", "++", true},
	} {
		w := newWorld(t, pod("a 10.0.0.1 app=a"), pod("b 10.0.0.2 app=b"), tt.object)
		if got := w.verdicts(in, out); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		if reported := len(w.notices) == 1 && w.notices[0].Reporter; reported != tt.reported {
			t.Errorf("%s: notices %+v, want one: %v", name, w.notices, tt.reported)
		}
	}
}

// TestUnknownPeers has rules of ClusterNetworkPolicies with a part that is not known: such a
// rule matches nothing if it accepts, and denies everything otherwise.
//
// Policy behaviour: 63.
func TestUnknownPeers(t *testing.T) {
	const flow, other = "10.0.0.1 > 10.0.0.2 tcp/80", "10.0.0.1 > 198.51.100.1 udp/53"
	// The last rule denies the flow, so that it is known whether an Accept matches.
	for _, part := range []string{
		"to: [{namespaces: {}}, {}]",
		"to: [{nodes: {}}]",
		"to: [{domainNames: [example.com]}]",
		"to: []",
		"to: [{namespaces: {}, networks: [0.0.0.0/0]}]",
		"to: [{namespaces: {}, pods: {namespaceSelector: {}, podSelector: {}}}]",
		"to: [{networks: [10.0.0.0/99]}]",
		"to: [{namespaces: {matchExpressions: [{key: a, operator: Like}]}}]",
		"to: [{namespaces: {}}], protocols: [{}]",
		"to: [{namespaces: {}}], protocols: [{tcp: {}, udp: {}}]",
		"to: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {}}}]",
		"to: [{namespaces: {}}], protocols: [{sctp: {destinationPort: {range: {start: 9, end: 8}}}}]",
	} {
		for action, want := range map[string]string{"Accept": "-+", "Deny": "--", "Pass": "--", "Sideways": "--"} {
			w := newWorld(t, pod("a 10.0.0.1"), pod("b 10.0.0.2"),
				clusterPolicy("p", "Admin", 1, "egress: [{name: unknown, action: "+action+", "+part+"}, {action: Deny, to: [{namespaces: {}}]}]"))
			if got := w.verdicts(flow, other); got != want {
				t.Errorf("%s %s: %s, want %s", action, part, got, want)
			}
			if len(w.notices) != 1 || w.notices[0].Kind != "ClusterNetworkPolicy" {
				t.Errorf("%s %s: notices %+v", action, part, w.notices)
			}
		}
	}
	w := newWorld(t, pod("a 10.0.0.1"), clusterPolicy("p", "Admin", 1, "ingress: [{action: Deny, from: [{}]}]"))
	w.expect("-", "198.51.100.1 > 10.0.0.1 tcp/80")
}

// TestManyRequirements has a selector that would cost too much for each pod.
func TestManyRequirements(t *testing.T) {
	var b strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&b, "{key: k%d, operator: DoesNotExist}, ", i)
	}
	w := newWorld(t, pod("a 10.0.0.1"), policy("p", "podSelector: {}, ingress: [{from: [{podSelector: {matchExpressions: ["+b.String()+"]}}]}]"))
	w.expect("-", "10.0.0.9 > 10.0.0.1 tcp/80")
	if len(w.notices) != 1 || !strings.Contains(w.notices[0].Message, "1001 requirements") {
		t.Errorf("notices %+v", w.notices)
	}
}

// TestManySets has policies that name more sets than the kernel should have: nothing that
// such a policy accepts is accepted, and it is reported. One at the limit is in force.
//
// Policy behaviour: 52.
func TestManySets(t *testing.T) {
	const in, out = "10.0.0.2 > 10.0.0.1 tcp/80", "10.0.0.1 > 10.0.0.2 tcp/80"
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+", ", i)
		}
		return "[" + b.String() + "]"
	}
	const selector, named = "{podSelector: {matchLabels: {app: a%d}}}", "{port: p%d}"
	tests := map[string]struct {
		policy string
		want   string
		bad    bool
	}{
		"limit":         {policy("p", "podSelector: {matchLabels: {app: a7}}, ingress: [{from: "+list(1000, selector)+"}]"), "++", false},
		"peers":         {policy("p", "podSelector: {matchLabels: {app: a7}}, ingress: [{from: "+list(1001, selector)+"}, {}]"), "-+", true},
		"ports":         {policy("p", "podSelector: {matchLabels: {app: a7}}, policyTypes: [Ingress, Egress], egress: [{to: "+list(2000, selector)+", ports: "+list(3000, named)+"}]"), "--", true},
		"admin accepts": {clusterPolicy("p", "Admin", 1, "egress: [{action: Accept, to: [{namespaces: {}}], protocols: "+list(1001, "{destinationNamedPort: p%d}")+"}]"), "++", true},
		"admin denies":  {clusterPolicy("p", "Admin", 1, "egress: [{action: Deny, to: [{namespaces: {}}], protocols: "+list(1001, "{destinationNamedPort: p%d}")+"}]"), "--", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pod("a 10.0.0.1 app=a7"), pod("b 10.0.0.2 app=a8"), tt.policy)
			w.expect(tt.want, in, out)
			if got := len(w.notices) == 1 && strings.Contains(w.notices[0].Message, "more than 1000 distinct selectors"); got != tt.bad {
				t.Errorf("notices %+v", w.notices)
			}
			if n := len(w.model.Snapshot().Sets); tt.bad && n > 0 {
				t.Errorf("%d sets", n)
			}
		})
	}
}

// TestManyFindings reports a bounded number of invalid parts.
func TestManyFindings(t *testing.T) {
	w := newWorld(t, pod("a 10.0.0.1"), policy("p", "podSelector: {}, ingress: [{from: ["+strings.Repeat("{}, ", 100)+"{}]}]"))
	problems := w.model.Snapshot().Policies[0].Problems
	if n := len(problems); n != 20 || !strings.HasSuffix(problems[n-1], "and other fields") {
		t.Errorf("%d problems: %q", n, problems)
	}
}
