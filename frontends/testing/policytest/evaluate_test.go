package policytest

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"
)

// world has the pods that the cases below ask about: a and b in the namespace shop, c in the
// namespace ops, host in the network of node-1, where a is too.
const world = `
kind: Node
metadata: {name: node-1}
status: {addresses: [{type: InternalIP, address: 192.168.200.11}]}
---
kind: Node
metadata: {name: node-2}
status: {addresses: [{type: InternalIP, address: 192.168.200.12}]}
---
kind: Namespace
metadata: {name: shop, labels: {team: shop}}
---
kind: Namespace
metadata: {name: ops, labels: {team: ops}}
---
kind: Pod
metadata: {name: a, namespace: shop, labels: {app: a, empty: ""}}
spec: {nodeName: node-1, containers: [{ports: [{name: web, containerPort: 80}, {name: dns, containerPort: 53, protocol: UDP}]}],
  initContainers: [{restartPolicy: Always, ports: [{name: side, containerPort: 81}]}, {ports: [{name: early, containerPort: 82}]}]}
status: {podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}, {ip: "fd00::1"}]}
---
kind: Pod
metadata: {name: b, namespace: shop, labels: {app: b}}
spec: {nodeName: node-2, containers: [{ports: [{name: web, containerPort: 8080}]}]}
status: {podIP: 10.0.0.2, podIPs: [{ip: 10.0.0.2}, {ip: "fd00::2"}]}
---
kind: Pod
metadata: {name: c, namespace: ops, labels: {app: a}}
spec: {nodeName: node-2, containers: []}
status: {podIP: 10.0.0.3}
---
kind: Pod
metadata: {name: done, namespace: shop, labels: {app: b}}
status: {phase: Succeeded, podIP: 10.0.0.9}
---
kind: Pod
metadata: {name: host, namespace: shop, labels: {app: b}}
spec: {nodeName: node-1, hostNetwork: true}
status: {podIP: 192.168.200.11}
`

// parse returns a cluster of the documents.
func parse(t *testing.T, documents string) *Cluster {
	t.Helper()
	c := NewCluster()
	for doc := range strings.SplitSeq(documents, "\n---\n") {
		var kind struct{ Kind string }
		read := func(into any) {
			if err := yaml.Unmarshal([]byte(doc), into); err != nil {
				t.Fatalf("parse %s: %v", doc, err)
			}
		}
		read(&kind)
		switch kind.Kind {
		case "Node":
			o := &corev1.Node{}
			read(o)
			c.Nodes[o.Name] = o
		case "Namespace":
			o := &corev1.Namespace{}
			read(o)
			c.Namespaces[o.Name] = o
		case "Pod":
			o := &corev1.Pod{}
			read(o)
			c.Pods[namespacedName(o)] = o
		case "NetworkPolicy":
			o := &networkingv1.NetworkPolicy{}
			read(o)
			c.Policies[namespacedName(o)] = o
		case "ClusterNetworkPolicy":
			o := &v1alpha2.ClusterNetworkPolicy{}
			read(o)
			c.ClusterPolicies[o.Name] = o
		default:
			t.Fatalf("document of the kind %q", kind.Kind)
		}
	}
	return c
}

// ask parses "10.0.0.1 10.0.0.2 TCP 80", in which the last two may be missing.
func ask(t *testing.T, c *Cluster, flow string) Verdict {
	t.Helper()
	fields := strings.Fields(flow)
	f := Flow{From: netip.MustParseAddr(fields[0]), To: netip.MustParseAddr(fields[1])}
	if len(fields) == 4 {
		f.Protocol = corev1.Protocol(fields[2])
		for _, digit := range fields[3] {
			f.Port = f.Port*10 + digit - '0'
		}
	}
	return c.Evaluate(f)
}

// TestEvaluate has a row for each sentence of the API's documentation that decides something.
func TestEvaluate(t *testing.T) {
	const (
		isolate = "\n---\nkind: NetworkPolicy\nmetadata: {name: p, namespace: shop}\nspec: "
		admin   = "\n---\nkind: ClusterNetworkPolicy\nmetadata: {name: adm}\nspec: "
	)
	tests := []struct{ name, policies, allowed, denied string }{
		{"no policy", "", "10.0.0.1 10.0.0.2 TCP 80; 203.0.113.1 10.0.0.1 TCP 80", ""},
		{"deny ingress", isolate + "{podSelector: {}}",
			"10.0.0.1 10.0.0.3 TCP 80; 10.0.0.1 203.0.113.1; 192.168.200.11 10.0.0.1 TCP 80; 10.0.0.1 10.0.0.1 TCP 80; 10.0.0.3 10.0.0.9 TCP 80; 10.0.0.3 192.168.200.11 TCP 80",
			"10.0.0.3 10.0.0.1 TCP 80; 203.0.113.1 10.0.0.1; 192.168.200.12 10.0.0.1 TCP 80; fd00::2 fd00::1 TCP 80"},
		{"egress rules without policyTypes", isolate + "{podSelector: {matchLabels: {app: a}}, egress: [{to: [{podSelector: {}}]}]}",
			"10.0.0.1 10.0.0.2 TCP 80", "10.0.0.1 10.0.0.3 TCP 80; 10.0.0.1 192.168.200.11 TCP 80; 10.0.0.2 10.0.0.1 TCP 80"},
		{"sections not in policyTypes", isolate + "{podSelector: {}, policyTypes: [Egress], ingress: [], egress: [{}]}", "10.0.0.3 10.0.0.1 TCP 80; 10.0.0.1 10.0.0.3", ""},
		{"pod and namespace selector", isolate + `{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: a}}, namespaceSelector: {matchLabels: {team: ops}}}]}]}`,
			"10.0.0.3 10.0.0.2 TCP 80", "10.0.0.1 10.0.0.2 TCP 80"},
		{"namespace selector alone", isolate + `{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}`, "10.0.0.3 10.0.0.2; 10.0.0.1 10.0.0.2", "203.0.113.1 10.0.0.2; 192.168.200.11 10.0.0.2"},
		{"operators", isolate + `{podSelector: {matchExpressions: [{key: empty, operator: Exists}, {key: app, operator: In, values: [a, x]}]}, ingress: [{from: [
			{podSelector: {matchExpressions: [{key: other, operator: NotIn, values: [x]}, {key: empty, operator: DoesNotExist}]}}]}]}`,
			"10.0.0.2 10.0.0.1; 10.0.0.3 10.0.0.2", "10.0.0.3 10.0.0.1"},
		{"an empty value needs the key", isolate + `{podSelector: {matchLabels: {empty: ""}}}`, "10.0.0.3 10.0.0.2", "10.0.0.3 10.0.0.1"},
		{"block", isolate + `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.77/24, except: [10.0.0.2/31]}}, {ipBlock: {cidr: 10.0.0.3/32}}]}]}`,
			"10.0.0.3 10.0.0.2; 10.0.0.1 10.0.0.2", "10.0.0.2 10.0.0.1; fd00::2 fd00::1; 203.0.113.1 10.0.0.1"},
		{"ports", isolate + `{podSelector: {}, ingress: [{ports: [{port: 80}, {protocol: UDP}, {port: 90, endPort: 92}]}]}`,
			"10.0.0.3 10.0.0.2 TCP 80; 10.0.0.3 10.0.0.2 UDP 7; 10.0.0.3 10.0.0.2 TCP 92", "10.0.0.3 10.0.0.2 SCTP 80; 10.0.0.3 10.0.0.2; 10.0.0.3 10.0.0.2 TCP 93; 10.0.0.3 10.0.0.2 TCP 89"},
		{"named ports", isolate + `{podSelector: {}, ingress: [{ports: [{port: web}, {port: dns}, {port: side}, {port: early}, {port: none}]}]}`,
			"10.0.0.3 10.0.0.1 TCP 80; 10.0.0.3 10.0.0.2 TCP 8080; 10.0.0.3 10.0.0.1 TCP 81", "10.0.0.3 10.0.0.2 TCP 80; 10.0.0.3 10.0.0.1 UDP 53; 10.0.0.3 10.0.0.1 TCP 53; 10.0.0.3 10.0.0.1 TCP 82"},
		{"named ports of egress are the destination's", isolate + `{podSelector: {matchLabels: {app: a}}, policyTypes: [Egress], egress: [{ports: [{port: web}]}]}`,
			"10.0.0.1 10.0.0.2 TCP 8080", "10.0.0.1 10.0.0.2 TCP 80; 10.0.0.1 203.0.113.1 TCP 80"},
		{"admin tier decides first", isolate + "{podSelector: {}}" + admin + `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [
			{action: Pass, from: [{pods: {podSelector: {matchLabels: {app: b}}}}]}, {action: Accept, from: [{namespaces: {matchLabels: {team: shop}}}], protocols: [{tcp: {destinationPort: {number: 80}}}]},
			{action: Deny, from: [{namespaces: {}}], protocols: [{udp: {}}, {sctp: {destinationPort: {range: {start: 5, end: 6}}}}, {destinationNamedPort: web}]}]}`,
			"10.0.0.1 10.0.0.2 TCP 80; 10.0.0.1 10.0.0.3 TCP 81; 10.0.0.2 10.0.0.3 UDP 9", "10.0.0.2 10.0.0.1 TCP 80; 10.0.0.3 10.0.0.3 UDP 80; 10.0.0.3 10.0.0.3 SCTP 6"},
		{"baseline is for pods that are not isolated", isolate + "{podSelector: {}, ingress: [{}]}" + admin + `{tier: Baseline, priority: 1, subject: {pods: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}`,
			"10.0.0.3 10.0.0.1 TCP 80; 203.0.113.1 10.0.0.3", "10.0.0.1 10.0.0.3 TCP 80"},
		{"networks and unknown peers", admin + `{tier: Admin, priority: 1, subject: {pods: {podSelector: {matchLabels: {app: b}}}}, egress: [
			{action: Accept, to: [{domainNames: [example.com]}, {networks: [0.0.0.0/0]}]}, {action: Deny, to: [{networks: [203.0.113.0/24, 10.0.0.3/32]}]}, {action: Pass, to: [{nodes: {}}]}]}`,
			"10.0.0.1 10.0.0.2", "10.0.0.2 203.0.113.1; 10.0.0.2 10.0.0.3; 10.0.0.2 10.0.0.1 TCP 80"},
		{"lower priority first", admin + `{tier: Admin, priority: 2, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}` +
			strings.Replace(admin, "adm", "first", 1) + `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Accept, from: [{namespaces: {matchLabels: {team: ops}}}]}]}`,
			"10.0.0.3 10.0.0.1", "10.0.0.1 10.0.0.2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := parse(t, world+strings.TrimPrefix(test.policies, "\n"))
			for i, flows := range []string{test.denied, test.allowed} {
				for flow := range strings.SplitSeq(flows, ";") {
					if flow == "" {
						continue
					}
					if v := ask(t, c, flow); v.Allowed != (i == 1) {
						t.Errorf("%s: %s", flow, v)
					}
				}
			}
		})
	}
}

// TestDecides shows that a verdict names the policy and the rule.
func TestDecides(t *testing.T) {
	c := parse(t, world+`---
kind: NetworkPolicy
metadata: {name: p, namespace: shop}
spec: {podSelector: {}, ingress: [{ports: [{port: 81}]}, {ports: [{port: 80}]}]}`)
	if got, want := ask(t, c, "10.0.0.3 10.0.0.2 TCP 80").Ingress.String(), "allowed NetworkPolicy shop/p ingress[1]"; got != want {
		t.Errorf("allowed flow: %q, want %q", got, want)
	}
	if got, want := ask(t, c, "10.0.0.3 10.0.0.2 TCP 82").String(), "denied NetworkPolicy shop/p"; !strings.Contains(got, want) {
		t.Errorf("denied flow: %q, want %q in it", got, want)
	}
	if got, want := (Flow{From: External(), To: External6(), Protocol: "TCP", Port: 1}).String(), "203.0.113.7 > 2001:db8::7 TCP/1"; got != want {
		t.Errorf("flow: %q, want %q", got, want)
	}
}
