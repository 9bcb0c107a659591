package model_test

import (
	"testing"
)

// TestNarrowed changes one thing after another: only what takes something away is reported,
// and only for the addresses concerned.
//
// Policy behaviour: 47, 48.
func TestNarrowed(t *testing.T) {
	web := "ingress: [{from: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: 80}]}]"
	deny := func(name, prio string) string {
		return "ClusterNetworkPolicy " + name + " {spec: {tier: Admin, priority: " + prio + ", subject: {namespaces: {}}, " +
			"ingress: [{action: Deny, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: bad}}}}]}]}}"
	}
	accept := clusterPolicy("accept", "Admin", 7, "ingress: [{action: Accept, from: [{namespaces: {}}]}]")
	pass := clusterPolicy("pass", "Admin", 8, "ingress: [{action: Pass, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: passed}}}}]}]")
	w := newWorld(t, pod("db 10.0.0.1 app=db"), pod("log 10.0.0.2 app=log"), pod("web 10.0.1.1 app=web", "node n2"))
	for _, step := range []struct {
		name     string
		set, del string
		want     string
	}{
		{"the first policy of a pod", policy("db", "podSelector: {matchLabels: {app: db}}, "+web), "", "10.0.0.1"},
		{"another policy", policy("more", "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{ipBlock: {cidr: 192.0.2.0/24}}]}]"), "", ""},
		{"a rule more", policy("more", "podSelector: {matchLabels: {app: db}}, ingress: [{}, {from: [{ipBlock: {cidr: 192.0.2.0/24}}]}]"), "", ""},
		{"a rule less", policy("more", "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{ipBlock: {cidr: 192.0.2.0/24}}]}]"), "", "10.0.0.1"},
		{"a wider block", policy("more", "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{ipBlock: {cidr: 192.0.0.0/16}}]}]"), "", ""},
		{"an exception", policy("more", "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{ipBlock: {cidr: 192.0.0.0/16, except: [192.0.3.0/24]}}]}]"), "", "10.0.0.1"},
		{"a port instead of all", policy("more", "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{ipBlock: {cidr: 192.0.0.0/16, except: [192.0.3.0/24]}}], ports: [{port: 80}]}]"), "", "10.0.0.1"},
		{"a range of ports", policy("more", "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{ipBlock: {cidr: 192.0.0.0/16, except: [192.0.3.0/24]}}], ports: [{port: 80, endPort: 90}]}]"), "", ""},
		{"all ports of the protocol", policy("more", "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{ipBlock: {cidr: 192.0.0.0/16, except: [192.0.3.0/24]}}], ports: [{}]}]"), "", ""},
		{"the policy leaves", "", policy("more", ""), "10.0.0.1"},
		{"an empty policy", policy("more", "podSelector: {matchLabels: {app: db}}"), "", ""},
		{"the empty policy leaves", "", policy("more", ""), ""},
		{"egress as well", policy("db", "podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress, Egress], "+web), "", "10.0.0.1"},
		{"and not any more", policy("db", "podSelector: {matchLabels: {app: db}}, "+web), "", ""},
		{"a member joins", pod("web2 10.0.1.2 app=web", "node n2"), "", ""},
		{"a member leaves", pod("web2 10.0.1.2 app=x", "node n2"), "", "10.0.1.2"},
		{"an unrelated pod", pod("x 10.0.1.3 app=x", "node n2"), "", ""},
		{"a pod of the node without policies", pod("free 10.0.0.3 app=free"), "", ""},
		{"a pod of the node with policies", pod("db2 10.0.0.4 app=db"), "", "10.0.0.4"},
		{"a new address", pod("db2 10.0.0.4,fd00::4 app=db"), "", "fd00::4"},
		{"a pod is selected", pod("free 10.0.0.3 app=db"), "", "10.0.0.3"},
		{"and not any more", pod("free 10.0.0.3 app=free"), "", ""},
		{"the pod leaves", "", pod("free 10.0.0.3"), ""},
		{"a policy that denies", deny("bad", "5"), "", "10.0.0.1 10.0.0.2 10.0.0.4 fd00::4"},
		{"a member of a rule that denies", pod("x 10.0.1.3 app=bad", "node n2"), "", "10.0.1.3"},
		{"it leaves", pod("x 10.0.1.3 app=x", "node n2"), "", ""},
		{"a policy that accepts", accept, "", ""},
		{"it decides first", deny("bad", "9"), "", "10.0.0.1 10.0.0.2 10.0.0.4 fd00::4"},
		{"a policy that passes", pass, "", "10.0.0.1 10.0.0.2 10.0.0.4 fd00::4"},
		{"a member of a rule that passes", pod("x 10.0.1.3 app=passed", "node n2"), "", "10.0.1.3"},
		{"it leaves", pod("x 10.0.1.3 app=x", "node n2"), "", "10.0.1.3"},
		{"the policy that accepts leaves", "", accept, "10.0.0.1 10.0.0.2 10.0.0.4 fd00::4"},
		{"the policy that denies leaves", "", deny("bad", "9"), ""},
		{"baseline for a pod that is not isolated", clusterPolicy("base", "Baseline", 1, "ingress: [{action: Deny, from: [{namespaces: {}}]}]"), "", "10.0.0.2"},
		{"isolation ends, and baseline decides", "", policy("db", ""), "10.0.0.1 10.0.0.4 fd00::4"},
		{"the baseline leaves", "", clusterPolicy("base", "Baseline", 1, ""), ""},
		{"isolation again", policy("db", "podSelector: {matchLabels: {app: db}}, "+web), "", "10.0.0.1 10.0.0.4 fd00::4"},
		{"isolation ends", "", policy("db", ""), ""},
	} {
		var got string
		if step.set != "" {
			got = addrs(w.set(step.set).Narrowed)
		} else {
			got = addrs(w.delete(step.del).Narrowed)
		}
		if got != step.want {
			t.Errorf("%s: narrowed %q, want %q", step.name, got, step.want)
		}
	}
}

// TestNarrowedRules changes the rules of a policy whose order matters.
//
// Policy behaviour: 47, 48, 59.
func TestNarrowedRules(t *testing.T) {
	rule := func(action, label string) string {
		return "{action: " + action + ", to: [{networks: [" + label + "]}]}"
	}
	egress := func(rules string) string { return clusterPolicy("p", "Admin", 1, "egress: ["+rules+"]") }
	first := rule("Accept", "10.1.0.0/16") + ", " + rule("Deny", "10.0.0.0/8")
	for name, tt := range map[string]struct {
		old, now string
		less     bool
	}{
		"same":                         {first, first, false},
		"an Accept in front":           {first, rule("Accept", "10.9.0.0/16") + ", " + first, false},
		"an Accept at the end":         {first, first + ", " + rule("Accept", "10.9.0.0/16"), false},
		"a Deny at the end":            {first, first + ", " + rule("Deny", "192.0.2.0/24"), true},
		"a Deny in front":              {first, rule("Deny", "10.1.2.0/24") + ", " + first, true},
		"without the Deny":             {first, rule("Accept", "10.1.0.0/16"), false},
		"without the Accept":           {first, rule("Deny", "10.0.0.0/8"), true},
		"a wider Accept":               {first, rule("Accept", "10.0.0.0/15") + ", " + rule("Deny", "10.0.0.0/8"), false},
		"a narrower Deny":              {first, rule("Accept", "10.1.0.0/16") + ", " + rule("Deny", "10.0.0.0/9"), false},
		"a wider Deny":                 {first, rule("Accept", "10.1.0.0/16") + ", " + rule("Deny", "0.0.0.0/0"), true},
		"the other order":              {first, rule("Deny", "10.0.0.0/8") + ", " + rule("Accept", "10.1.0.0/16"), true},
		"a Pass":                       {first, rule("Pass", "10.1.0.0/16") + ", " + first, true},
		"Pass instead of Deny":         {rule("Deny", "10.1.0.0/16"), rule("Pass", "10.1.0.0/16"), true},
		"a port more":                  {"{action: Accept, to: [{networks: [10.1.0.0/16]}], protocols: [{tcp: {destinationPort: {number: 5}}}, {udp: {}}]}", "{action: Accept, to: [{networks: [10.1.0.0/16]}], protocols: [{tcp: {destinationPort: {number: 1}}}, {tcp: {destinationPort: {number: 5}}}, {udp: {}}, {sctp: {}}]}", false},
		"a protocol less":              {"{action: Accept, to: [{networks: [10.1.0.0/16]}], protocols: [{tcp: {destinationPort: {number: 5}}}, {udp: {}}]}", "{action: Accept, to: [{networks: [10.1.0.0/16]}], protocols: [{tcp: {}}]}", true},
		"a name":                       {rule("Deny", "10.1.0.0/16"), "{name: x, action: Deny, to: [{networks: [10.1.0.0/16]}]}", false},
		"the rule that denies matches": {"{action: Deny, to: [{networks: [10.1.0.0/16]}], protocols: [{tcp: {destinationPort: {range: {start: 1, end: 9}}}}]}", "{action: Deny, to: [{networks: [10.1.0.0/16]}], protocols: [{tcp: {destinationPort: {number: 5}}}]}", false},
	} {
		w := newWorld(t, pod("a 10.0.0.1"), egress(tt.old))
		if got := len(w.set(egress(tt.now)).Narrowed) > 0; got != tt.less {
			t.Errorf("%s: narrowed is %v, want %v", name, got, tt.less)
		}
	}
}
