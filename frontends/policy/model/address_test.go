package model_test

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/testing/modeltest"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// fromWeb is a policy that lets pods with app=web in.
const fromWeb = "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]"

// TestAddressReuse has an address go from a pod to another one, with the events in any order.
//
// Policy behaviour: 46.
func TestAddressReuse(t *testing.T) {
	old, next := pod("web 10.0.1.1 app=web", "node n2"), pod("job 10.0.1.1 app=job", "node n2")
	w := newWorld(t, pod("db 10.0.0.1 app=db"), policy("db", fromWeb), old)
	const flow = "10.0.1.1 > 10.0.0.1 tcp/80"
	w.expect("+", flow)
	// The new owner is known first: the address counts only if both may use it.
	if c := w.set(next); addrs(c.Narrowed) != "10.0.1.1" {
		t.Errorf("narrowed %v", c.Narrowed)
	}
	w.expect("-", flow)
	w.delete(old)
	w.expect("-", flow)
	w.set(pod("job 10.0.1.2 app=job", "node n2"), old)
	w.expect("+", flow)
	// In the other order.
	w.delete(old)
	w.expect("-", flow)
	w.set(pod("web2 10.0.1.1 app=web", "node n2"))
	w.expect("+", flow)
	// Two pods that both may: it stays when one of them leaves.
	w.set(old)
	if c := w.delete(pod("web2 10.0.1.1")); !c.Empty() {
		t.Errorf("changes %+v", c)
	}
	w.expect("+", flow)
	// The same name with another UID is another pod.
	w.set(strings.Replace(pod("web 10.0.1.3 app=job", "node n2"), "metadata: {", "metadata: {uid: other, ", 1))
	w.expect("-", flow)
	if n := w.model.Stats().Pods; n != 3 {
		t.Errorf("%d pods, want 3", n)
	}
}

// TestSharedAddress has pods of the node with one address: the oldest owns it, with the
// policies of all.
//
// Policy behaviour: 46.
func TestSharedAddress(t *testing.T) {
	aged := func(text, created string) string {
		return strings.Replace(text, "metadata: {", "metadata: {creationTimestamp: '2026-01-0"+created+"T00:00:00Z', ", 1)
	}
	w := newWorld(t, policy("db", fromWeb), aged(pod("new 10.0.0.1,fd00::1 app=x"), "2"))
	const flow = "192.0.2.1 > 10.0.0.1 tcp/80"
	w.expect("+", flow)
	w.set(aged(pod("old 10.0.0.1 app=db"), "1"))
	w.expect("-", flow)
	if p := w.Pods["shop/new"]; addrs(p.Addresses) != "fd00::1" || len(p.Policies[model.Ingress]) != 0 {
		t.Errorf("the younger pod is %+v", p)
	}
	if p := w.Pods["shop/old"]; addrs(p.Addresses) != "10.0.0.1" || len(p.Policies[model.Ingress]) != 1 {
		t.Errorf("the older pod is %+v", p)
	}
	if len(w.notices) != 1 || w.notices[0].Reason != model.AddressConflict || !strings.Contains(w.notices[0].Message, "shop/new, shop/old") {
		t.Errorf("notices %+v", w.notices)
	}
	// The policies of the younger one apply to the older too.
	w.set(aged(pod("old 10.0.0.1 app=x"), "1"))
	w.expect("+", flow)
	w.set(aged(pod("new 10.0.0.1,fd00::1 app=db"), "2"))
	w.expect("-", flow)
	w.delete(pod("new 10.0.0.1"))
	w.expect("+", flow)
	// A third, and one of another node, which does not own it here.
	w.set(aged(pod("far 10.0.0.1 app=db", "node n2"), "1"), aged(pod("third 10.0.0.1 app=x"), "3"), aged(pod("fourth 10.0.0.1 app=x"), "4"))
	w.expect("+", flow)
	w.delete(pod("old 10.0.0.1"), pod("third 10.0.0.1"))
	if p := w.Pods["shop/fourth"]; p == nil || addrs(p.Addresses) != "10.0.0.1" {
		t.Errorf("the last pod is %+v", p)
	}
}

// TestSharedAddressDenied has an address of two pods in a set of a rule that denies: one of
// them is enough.
func TestSharedAddressDenied(t *testing.T) {
	rule := "pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: bad}}}"
	w := newWorld(t, pod("a 10.0.0.1"), pod("good 10.0.1.1 app=good", "node n2"),
		clusterPolicy("p", "Admin", 1, "ingress: [{action: Deny, from: [{"+rule+"}]}], egress: [{action: Deny, to: [{"+rule+"}], protocols: [{destinationNamedPort: http}]}]"))
	const flow, back = "10.0.1.1 > 10.0.0.1 tcp/80", "10.0.0.1 > 10.0.1.1 tcp/8080"
	w.expect("++", flow, back)
	w.set(pod("bad 10.0.1.1 app=bad", "node n2", "containers: [{name: c, ports: [{name: http, containerPort: 8080}]}]"),
		pod("bad2 10.0.1.1 app=bad", "node n2", "containers: [{name: c, ports: [{name: http, containerPort: 8080}, {name: http, protocol: UDP, containerPort: 8080}]}]"))
	w.expect("--", flow, back)
	w.delete(pod("bad 10.0.1.1"))
	w.expect("--", flow, back)
	w.delete(pod("bad2 10.0.1.1"))
	w.expect("++", flow, back)
}

// TestForeignAddresses has addresses in the status of pods that no pod can have. They are
// ignored, and the other address of the pod counts.
func TestForeignAddresses(t *testing.T) {
	setup := []string{
		"Node node-1 {spec: {podCIDRs: [10.0.0.0/24]}, status: {addresses: [{type: InternalIP, address: 192.0.2.1}, {type: Hostname, address: node-1}, {type: ExternalIP, address: x}]}}",
		"ServiceCIDR kubernetes {spec: {cidrs: [10.96.0.0/16, bad]}}",
		policy("p", "podSelector: {}"),
	}
	for _, bad := range []string{"192.0.2.1", "10.96.0.10", "127.0.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0", "nonsense", "fe80::1%eth0"} {
		w := newWorld(t, append(setup, pod("a "+bad+",fd00::1"))...)
		if p := w.Pods["shop/a"]; p == nil || addrs(p.Addresses) != "fd00::1" {
			t.Errorf("%s: the pod is %+v", bad, p)
		}
		if len(w.notices) != 1 || w.notices[0].Reason != model.InvalidAddress || w.notices[0].Name.Name != "a" || !w.notices[0].Reporter {
			t.Errorf("%s: notices %+v", bad, w.notices)
		}
	}
	// What the node and the Services have may become known later.
	w := newWorld(t, setup[2], pod("a 192.0.2.1,fd00::1"), pod("b 10.96.0.10"), pod("far 10.96.0.11", "node n2"))
	if len(w.Pods) != 2 {
		t.Errorf("pods %v", w.Pods)
	}
	w.set(setup...)
	if p := w.Pods["shop/a"]; len(w.Pods) != 1 || addrs(p.Addresses) != "fd00::1" {
		t.Errorf("pods %v", w.Pods)
	}
	w.set("Node node-1 {}", "Node node-2 {}")
	w.delete("ServiceCIDR kubernetes {}", "ServiceCIDR kubernetes {}", "Node node-1 {}")
	if p := w.Pods["shop/a"]; len(w.Pods) != 2 || addrs(p.Addresses) != "192.0.2.1 fd00::1" {
		t.Errorf("pods %v", w.Pods)
	}
}

// TestPods has pods that no policy can select.
//
// Policy behaviour: 9-11.
func TestPods(t *testing.T) {
	w := newWorld(t, policy("p", "podSelector: {}"),
		pod("host 192.0.2.1", "hostNetwork: true"), pod("far 10.0.1.1", "node n2"), pod("a 10.0.0.1"),
		"Pod shop/none {spec: {nodeName: node-1}}", "Pod shop/old {spec: {nodeName: node-1}, status: {podIP: 010.0.0.9}}",
		"Pod shop/done {spec: {nodeName: node-1}, status: {phase: Succeeded, podIP: 10.0.0.2}}",
		"Pod shop/failed {spec: {nodeName: node-1}, status: {phase: Failed, podIP: 10.0.0.3}}",
		"Pod shop/ending {metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {nodeName: node-1}, status: {phase: Running, podIPs: [{ip: 10.0.0.4}, {ip: 10.0.0.5}]}}")
	got := ""
	for _, p := range w.model.Snapshot().Pods {
		got += p.Name.Name + " " + addrs(p.Addresses) + "; "
	}
	if want := "a 10.0.0.1; ending 10.0.0.4; old 10.0.0.9; "; got != want {
		t.Errorf("pods %q, want %q", got, want)
	}
	w.set("Pod shop/a {spec: {nodeName: node-1}, status: {phase: Succeeded, podIP: 10.0.0.1}}")
	w.delete(pod("ending 10.0.0.4"), pod("ending 10.0.0.4"), pod("unknown 10.0.0.1"))
	if len(w.Pods) != 1 || w.model.Stats().Pods != 2 {
		t.Errorf("pods %v, stats %+v", w.Pods, w.model.Stats())
	}
	// A pod without a UID has its name.
	o := parse(t, pod("a 10.0.0.1"))
	o.SetUID("")
	modeltest.Apply(w.model, policytest.Change{New: o})
	w.refresh()
	if w.Pods["shop/a"] == nil {
		t.Error("a pod without UID is missing")
	}
}

// TestSameUID has two pods with one UID, as manifests may have. Both count.
func TestSameUID(t *testing.T) {
	twin := func(text string) string { return strings.Replace(text, "metadata: {", "metadata: {uid: same, ", 1) }
	w := newWorld(t, policy("p", "podSelector: {}"), twin(pod("a 10.0.0.1")), twin(pod("b 10.0.0.2")))
	w.expect("--", "192.0.2.1 > 10.0.0.1 tcp/80", "192.0.2.1 > 10.0.0.2 tcp/80")
	w.delete(pod("a 10.0.0.1"))
	w.expect("+-", "192.0.2.1 > 10.0.0.1 tcp/80", "192.0.2.1 > 10.0.0.2 tcp/80")
	w.set(twin(pod("b 10.0.0.2 x=y")))
	w.expect("-", "192.0.2.1 > 10.0.0.2 tcp/80")
}
