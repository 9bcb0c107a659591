package model_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/testing/modeltest"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// world is a model of a small cluster with what a reader knows of it.
type world struct {
	*outcome
	t       *testing.T
	model   *model.Model
	notices []model.Notice
}

// newWorld returns a model of node-1 with some objects.
func newWorld(t *testing.T, objects ...string) *world {
	t.Helper()
	w := &world{t: t, outcome: newOutcome()}
	w.model = model.New(model.Config{NodeName: node, Notify: func(n model.Notice) { w.notices = append(w.notices, n) }})
	w.set(objects...)
	return w
}

// parse decodes an object from YAML such as "Pod shop/a {spec: {nodeName: n1}}".
func parse(t *testing.T, text string) metav1.Object {
	t.Helper()
	kind, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, body, _ := strings.Cut(rest, " ")
	var o metav1.Object
	switch kind {
	case "Pod":
		o = &corev1.Pod{}
	case "Namespace":
		o = &corev1.Namespace{}
	case "Node":
		o = &corev1.Node{}
	case "NetworkPolicy":
		o = &networkingv1.NetworkPolicy{}
	case "ClusterNetworkPolicy":
		o = &v1alpha2.ClusterNetworkPolicy{}
	case "ServiceCIDR":
		o = &networkingv1.ServiceCIDR{}
	default:
		t.Fatalf("unknown kind in %q", text)
	}
	if err := yaml.UnmarshalStrict([]byte(body), o); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if ns, n, ok := strings.Cut(name, "/"); ok {
		o.SetNamespace(ns)
		name = n
	}
	o.SetName(name)
	if o.GetUID() == "" {
		o.SetUID(types.UID(o.GetNamespace() + "/" + o.GetName()))
	}
	return o
}

// set stores objects, refreshes the model, and returns what changed.
func (w *world) set(objects ...string) model.Changes {
	w.t.Helper()
	for _, text := range objects {
		modeltest.Apply(w.model, policytest.Change{New: parse(w.t, text)})
	}
	return w.refresh()
}

// delete removes objects.
func (w *world) delete(objects ...string) model.Changes {
	w.t.Helper()
	for _, text := range objects {
		modeltest.Apply(w.model, policytest.Change{Old: parse(w.t, text)})
	}
	return w.refresh()
}

func (w *world) refresh() model.Changes {
	w.t.Helper()
	c := w.model.Refresh()
	w.apply(w.t, c)
	return c
}

// pod returns the text of a pod: "a 10.0.0.1 app=a,tier=db" is on node-1, in the namespace
// shop.
func pod(text string, more ...string) string {
	f := append(strings.Fields(text), "", "")
	if !strings.Contains(f[0], "/") {
		f[0] = "shop/" + f[0]
	}
	labels := strings.ReplaceAll(strings.ReplaceAll(f[2], "=", ": "), ",", ", ")
	ips := "{ip: '" + strings.ReplaceAll(f[1], ",", "'}, {ip: '") + "'}"
	on := node
	spec := ""
	for _, m := range more {
		if v, ok := strings.CutPrefix(m, "node "); ok {
			on = v
			continue
		}
		spec += ", " + m
	}
	return fmt.Sprintf("Pod %s {metadata: {labels: {%s}}, spec: {nodeName: %s%s}, status: {podIPs: [%s]}}", f[0], labels, on, spec, ips)
}

// policy returns the text of a NetworkPolicy in the namespace shop.
func policy(name, spec string) string {
	return "NetworkPolicy shop/" + name + " {spec: {" + spec + "}}"
}

// clusterPolicy returns the text of a ClusterNetworkPolicy of all pods.
func clusterPolicy(name, tier string, priority int, rules string) string {
	return fmt.Sprintf("ClusterNetworkPolicy %s {spec: {tier: %s, priority: %d, subject: {namespaces: {}}, %s}}", name, tier, priority, rules)
}

// verdicts returns "+" for each flow such as "10.0.0.1 > 10.0.0.2 tcp/80" that is allowed in
// both directions as far as the pods of the node decide, and "-" for the others.
func (w *world) verdicts(flows ...string) string {
	w.t.Helper()
	var b strings.Builder
	for _, text := range flows {
		part := strings.Fields(text)
		f := flow{from: netip.MustParseAddr(part[0]), to: netip.MustParseAddr(part[2])}
		if len(part) > 3 {
			var proto string
			if _, err := fmt.Sscanf(strings.ReplaceAll(part[3], "/", " "), "%s %d", &proto, &f.port); err != nil {
				w.t.Fatal(err)
			}
			f.protocol = map[string]model.Protocol{"tcp": model.TCP, "udp": model.UDP, "sctp": model.SCTP}[proto]
		}
		in, _ := w.judge(model.Ingress, f)
		out, _ := w.judge(model.Egress, f)
		b.WriteByte("-+"[map[bool]int{true: 1}[in && out]])
	}
	return b.String()
}

// expect fails the test unless the flows have these verdicts.
func (w *world) expect(want string, flows ...string) {
	w.t.Helper()
	if got := w.verdicts(flows...); got != want {
		w.t.Errorf("%q are %s, want %s", flows, got, want)
	}
}

// members returns all sets with their members, sorted.
func (w *world) members() string {
	w.t.Helper()
	var all []string
	for _, id := range slices.Sorted(maps.Keys(w.Members)) {
		var texts []string
		for m := range w.Members[id] {
			s := m.Addr.String()
			if m.Port != 0 {
				s = fmt.Sprintf("%s %s/%d", m.Addr, m.Protocol, m.Port)
			}
			texts = append(texts, s)
		}
		slices.Sort(texts)
		all = append(all, fmt.Sprintf("%s = %s", id, strings.Join(texts, ", ")))
	}
	return strings.Join(all, "; ")
}

// addrs returns addresses with spaces between them.
func addrs(in []netip.Addr) string { return strings.Trim(fmt.Sprint(in), "[]") }
