package model_test

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// TestPeers has the peers of a rule, with the sets that they become.
//
// Policy behaviour: 12-15, 26.
func TestPeers(t *testing.T) {
	for _, tt := range []struct{ name, peers, want string }{
		{"own namespace", "{podSelector: {matchLabels: {app: web}}}", "shop: app=web = 10.0.1.1"},
		{"all of the namespace", "{podSelector: {}}", "shop = 10.0.0.1, 10.0.1.1, 10.0.1.2"},
		{"a namespace", "{namespaceSelector: {matchLabels: {team: a}}}", "{team=a} = 10.0.1.3, 10.0.1.4"},
		{"its name", "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: one}}}", "{kubernetes.io/metadata.name=one} = 10.0.1.3, 10.0.1.4"},
		{"all namespaces", "{namespaceSelector: {}}", "{} = 10.0.0.1, 10.0.1.1, 10.0.1.2, 10.0.1.3, 10.0.1.4, 10.0.1.5"},
		{"both match", "{namespaceSelector: {matchLabels: {team: a}}, podSelector: {matchLabels: {app: web}}}", "{team=a}: app=web = 10.0.1.3"},
		{"either entry", "{podSelector: {matchLabels: {app: x}}}, {namespaceSelector: {matchLabels: {team: b}}}", "shop: app=x = 10.0.1.2; {team=b} = 10.0.1.5"},
		{"twice the same", "{podSelector: {matchLabels: {app: x}}}, {podSelector: {matchExpressions: [{key: app, operator: In, values: [x, x]}]}}", "shop: app=x = 10.0.1.2"},
		{"In", "{podSelector: {matchExpressions: [{key: app, operator: In, values: [x, web]}]}}", "shop: app in (web,x) = 10.0.1.1, 10.0.1.2"},
		{"NotIn matches an absent key", "{podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [x, web]}]}}", "shop: app notin (web,x) = 10.0.0.1"},
		{"not one", "{podSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [top]}]}}", "shop: tier!=top = 10.0.0.1, 10.0.1.2"},
		{"Exists", "{podSelector: {matchExpressions: [{key: tier, operator: Exists}]}}", "shop: tier = 10.0.1.1"},
		{"DoesNotExist", "{podSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}}", "shop: !tier = 10.0.0.1, 10.0.1.2"},
		{"an empty value needs the key", "{podSelector: {matchLabels: {tier: ''}}}", "shop: tier= = "},
		{"a value that needs quotes", "{podSelector: {matchExpressions: [{key: app, operator: In, values: ['a,b']}]}}", `shop: app="a,b" = `},
		{"two requirements", "{podSelector: {matchLabels: {tier: top, app: web}}}", "shop: app=web,tier=top = 10.0.1.1"},
	} {
		w := newWorld(t, "Namespace shop {}", "Namespace one {metadata: {labels: {team: a}}}", "Namespace two {metadata: {labels: {team: b}}}",
			pod("db 10.0.0.1"), pod("web 10.0.1.1 app=web,tier=top", "node n2"), pod("x 10.0.1.2 app=x", "node n2"),
			pod("one/web 10.0.1.3 app=web", "node n2"), pod("one/x 10.0.1.4 app=x", "node n2"), pod("two/web 10.0.1.5 app=web", "node n2"),
			policy("p", "podSelector: {}, ingress: [{from: ["+tt.peers+"]}]"))
		if got := w.members(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestUnknownNamespace has pods of a namespace whose labels are not known: a selector that
// matches without a label does not accept them yet.
func TestUnknownNamespace(t *testing.T) {
	for peer, want := range map[string]string{
		"{namespaceSelector: {}}": "+",
		"{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: one}}}":                      "+",
		"{namespaceSelector: {matchExpressions: [{key: stage, operator: NotIn, values: [test]}]}}":    "-",
		"{namespaceSelector: {matchExpressions: [{key: stage, operator: DoesNotExist}]}}":             "-",
		"{namespaceSelector: {matchExpressions: [{key: stage, operator: In, values: [production]}]}}": "-",
	} {
		w := newWorld(t, pod("db 10.0.0.1"), policy("p", "podSelector: {}, ingress: [{from: ["+peer+"]}]"), pod("one/web 10.0.1.1", "node n2"))
		const flow = "10.0.1.1 > 10.0.0.1 tcp/80"
		w.expect(want, flow)
		w.set("Namespace one {metadata: {labels: {stage: production}}}")
		if got := w.verdicts(flow); got == "-" && peer != "{namespaceSelector: {matchExpressions: [{key: stage, operator: DoesNotExist}]}}" {
			t.Errorf("%s: denied with the labels", peer)
		}
		w.delete("Namespace one {}", "Namespace one {}", "Namespace none {}")
		w.expect(want, flow)
	}
}

// TestNamespaceLabels changes the labels of a namespace that is a peer.
//
// Policy behaviour: 45.
func TestNamespaceLabels(t *testing.T) {
	w := newWorld(t, "Namespace one {metadata: {labels: {team: a}}}", pod("db 10.0.0.1"), pod("one/web 10.0.1.1", "node n2"),
		policy("p", "podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: a}}}]}]"))
	if c := w.set("Namespace one {metadata: {labels: {team: a, other: x}}}"); !c.Empty() {
		t.Errorf("another label: changes %+v", c)
	}
	if c := w.set("Namespace one {}"); addrs(c.Narrowed) != "10.0.1.1" || len(c.Sets) != 1 {
		t.Errorf("without the label: changes %+v", c)
	}
	w.expect("-", "10.0.1.1 > 10.0.0.1 tcp/80")
}

// TestNamedPorts resolves names at the destination.
//
// Policy behaviour: 22, 25-28.
func TestNamedPorts(t *testing.T) {
	const (
		plain   = "containers: [{name: c, ports: [{name: http, containerPort: 80}, {name: http, containerPort: 81}, {name: http, protocol: UDP, containerPort: 82}, {containerPort: 9}, {name: bad, containerPort: 0}]}]"
		sidecar = "initContainers: [{name: i, restartPolicy: Always, ports: [{name: http, containerPort: 90}]}, {name: j, ports: [{name: http, protocol: SCTP, containerPort: 91}]}]"
	)
	pods := []string{
		pod("a 10.0.0.1 app=a", plain), pod("b 10.0.0.2 app=b", "containers: [{name: c}]", sidecar),
		pod("far 10.0.1.1 app=a", plain, "node n2"), pod("one/far 10.0.1.2", "containers: [{name: c}]", sidecar, "node n2"),
	}
	for _, tt := range []struct{ name, spec, want string }{
		{"of the subject", "podSelector: {}, ingress: [{ports: [{port: http}]}]", "port http/tcp of shop on this node = 10.0.0.1 tcp/80, 10.0.0.2 tcp/90"},
		{"of UDP", "podSelector: {}, ingress: [{ports: [{port: http, protocol: UDP}]}]", "port http/udp of shop on this node = 10.0.0.1 udp/82"},
		{"of SCTP", "podSelector: {}, ingress: [{ports: [{port: http, protocol: SCTP}]}]", "port http/sctp of shop on this node = "},
		{"nowhere", "podSelector: {}, ingress: [{ports: [{port: bad}]}]", "port bad/tcp of shop on this node = "},
		{"of peers", "podSelector: {}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: a}}}], ports: [{port: http}]}]", "port http/tcp of shop: app=a = 10.0.0.1 tcp/80, 10.0.1.1 tcp/80; shop: app=a = 10.0.0.1, 10.0.1.1"},
		{"of anyone", "podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: http}]}]", "port http/tcp of {} = 10.0.0.1 tcp/80, 10.0.0.2 tcp/90, 10.0.1.1 tcp/80, 10.0.1.2 tcp/90"},
		{"of a block", "podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [{port: http, protocol: UDP}]}]", "port http/udp of {} = 10.0.0.1 udp/82, 10.0.1.1 udp/82"},
	} {
		w := newWorld(t, append(pods, policy("p", tt.spec))...)
		if got := w.members(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	w := newWorld(t, append(pods, clusterPolicy("c", "Admin", 1, "ingress: [{action: Deny, from: [{namespaces: {}}], protocols: [{destinationNamedPort: http}]}]"))...)
	if got, want := w.members(), "port http/any of {} on this node to deny = 10.0.0.1 tcp/80, 10.0.0.1 udp/82, 10.0.0.2 tcp/90; {} to deny = 10.0.0.1, 10.0.0.2, 10.0.1.1, 10.0.1.2"; got != want {
		t.Errorf("any protocol: %s, want %s", got, want)
	}
	// A container changes its port.
	w = newWorld(t, pods[0], policy("p", "podSelector: {}, ingress: [{ports: [{port: http}]}]"))
	if c := w.set(pod("a 10.0.0.1 app=a", "containers: [{name: c, ports: [{name: http, containerPort: 8080}]}]")); fmt.Sprint(c.Sets[0].Added, c.Sets[0].Removed) != "[{10.0.0.1 tcp 8080}] [{10.0.0.1 tcp 80}]" {
		t.Errorf("changes %+v", c.Sets)
	}
}

// TestParts has the ranges of addresses and ports of rules in canonical form.
//
// Policy behaviour: 17, 18, 20, 22-24.
func TestParts(t *testing.T) {
	for _, tt := range []struct{ name, rule, blocks, ports string }{
		{"blocks are merged", "from: [{ipBlock: {cidr: 'fd00::/64'}}, {ipBlock: {cidr: 10.1.0.0/16}}, {ipBlock: {cidr: 10.0.0.0/16}}, {ipBlock: {cidr: 10.0.3.0/24}}]", "[{10.0.0.0 10.1.255.255} {fd00:: fd00::ffff:ffff:ffff:ffff}]", "[]"},
		{"exceptions", "from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.0.0/9, 10.192.0.0/16, 10.255.255.255/32, 11.0.0.0/8]}}]", "[{10.128.0.0 10.191.255.255} {10.193.0.0 10.255.255.254}]", "[]"},
		{"an exception of one block", "from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}, {ipBlock: {cidr: 10.1.2.0/24}}]", "[{10.0.0.0 10.0.255.255} {10.1.2.0 10.1.2.255} {10.2.0.0 10.255.255.255}]", "[]"},
		{"nothing is left", "from: [{ipBlock: {cidr: 10.0.0.0/8, except: [0.0.0.0/0]}}]", "[]", "[]"},
		{"the whole family", "from: [{ipBlock: {cidr: '::/0', except: ['::/1']}}, {ipBlock: {cidr: 0.0.0.0/0}}]", "[{0.0.0.0 255.255.255.255} {8000:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff}]", "[]"},
		{"old notation", "from: [{ipBlock: {cidr: 010.001.002.003/16}}, {ipBlock: {cidr: '::ffff:192.0.2.0/120'}}]", "[{10.1.0.0 10.1.255.255} {192.0.2.0 192.0.2.255}]", "[]"},
		{"ports", "ports: [{port: 443}, {port: 80, endPort: 90, protocol: TCP}, {port: 85, endPort: 91}, {port: 92}, {protocol: UDP, port: 65535}, {protocol: SCTP}, {protocol: SCTP, port: 7}]", "[]", "[{tcp 80 92} {tcp 443 443} {udp 65535 65535} {sctp 0 0}]"},
		{"all ports of a protocol", "ports: [{port: 80}, {}]", "[]", "[{tcp 0 0}]"},
	} {
		w := newWorld(t, pod("a 10.0.0.1"), policy("p", "podSelector: {}, ingress: [{"+tt.rule+"}]"))
		r := w.Policies[model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: "shop", Name: "p"}].Rules[model.Ingress][0]
		if got := fmt.Sprint(r.Blocks); got != tt.blocks {
			t.Errorf("%s: blocks %s, want %s", tt.name, got, tt.blocks)
		}
		if got := fmt.Sprint(r.Ports); got != tt.ports {
			t.Errorf("%s: ports %s, want %s", tt.name, got, tt.ports)
		}
		if len(w.notices) > 0 {
			t.Errorf("%s: notices %+v", tt.name, w.notices)
		}
	}
}

// TestReporter reports a policy on the nodes of the first pods that it selects.
func TestReporter(t *testing.T) {
	bad := policy("p", "podSelector: {}, ingress: [{from: [{}]}]")
	for first, want := range map[string]bool{"a": false, "z": true} {
		w := newWorld(t, pod("one/b 10.9.0.1", "node n2"))
		for i := range 3 {
			w.set(pod(fmt.Sprintf("%s%d 10.0.1.%d", first, i, i+1), "node n2"))
		}
		w.set(pod("m 10.0.0.1"), bad)
		if len(w.notices) != 1 || w.notices[0].Reporter != want {
			t.Errorf("notices %+v, want Reporter %v", w.notices, want)
		}
		if w.delete(policy("p", "")); w.model.Policy(model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: "shop", Name: "p"}) != nil {
			t.Error("the policy is still there")
		}
	}
}

// TestPodCIDR has a Node with the older field, whose prefix has bits beyond its length.
func TestPodCIDR(t *testing.T) {
	m := model.New(model.Config{})
	m.SetNode(model.ParseNode(&corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "10.0.0.9/24"}}))
	if !m.Dirty() {
		t.Error("not dirty")
	}
	m.Refresh()
	if got := m.Snapshot().Node.PodCIDRs; len(got) != 1 || got[0] != netip.MustParsePrefix("10.0.0.0/24") {
		t.Errorf("PodCIDRs %v", got)
	}
}
