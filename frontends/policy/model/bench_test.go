package model_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// The size of a large cluster: 110 pods are on the node.
const (
	benchNamespaces = 1000
	benchPods       = 100_000
	benchPolicies   = 10_000
	benchLocal      = 110
)

// benchPod returns a pod of a replica set with ten pods, five of which a namespace has.
func benchPod(i int) *corev1.Pod {
	ns, app := i%benchNamespaces, i/benchNamespaces%10
	on := fmt.Sprint("node-", 2+i%1000)
	if i%(benchPods/benchLocal) == 0 {
		on = node
	}
	ip := fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("team-", ns), Name: fmt.Sprintf("app-%d-7d9f8b6c5d-%05d", app, i), UID: types.UID(fmt.Sprintf("1f2e3d4c-0000-4000-8000-%012d", i)),
			Labels: map[string]string{
				"app": fmt.Sprint("app-", app), "pod-template-hash": fmt.Sprint("7d9f8b6c5d", app), "team": fmt.Sprint("team-", ns), "tier": []string{"front", "back"}[app%2],
			},
		},
		Spec:   corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}, {IP: fmt.Sprintf("fd00::%x:%x", i>>16+1, i&0xffff)}}},
	}
}

// benchPolicy returns a policy for one application of a namespace: from another one, from the
// namespaces of a stage, and from a range.
func benchPolicy(i int) *networkingv1.NetworkPolicy {
	ns, app := i%benchNamespaces, i/benchNamespaces
	selects := func(app int) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("app-", app)}}
	}
	port, name := intstr.FromInt32(8080), intstr.FromString("http")
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("team-", ns), Name: fmt.Sprint("app-", app)},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *selects(app), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: []networkingv1.NetworkPolicyPeer{{PodSelector: selects((app + 1) % 10)}}, Ports: []networkingv1.NetworkPolicyPort{{Port: &port}}},
				{From: []networkingv1.NetworkPolicyPeer{{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": fmt.Sprint("stage-", i%10)}}, PodSelector: selects(app),
				}}, Ports: []networkingv1.NetworkPolicyPort{{Port: &name}}},
				{From: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.7/32"}}}}},
			},
		},
	}
}

func benchNamespace(i int, stage int) *corev1.Namespace {
	name := fmt.Sprint("team-", i)
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"stage": fmt.Sprint("stage-", stage)}}}
}

// large returns a model of a large cluster.
func large(tb testing.TB) *model.Model {
	tb.Helper()
	m := model.New(model.Config{NodeName: node})
	for i := range benchNamespaces {
		m.SetNamespace(model.ParseNamespace(benchNamespace(i, i%10)))
	}
	for i := range benchPolicies {
		m.SetPolicy(model.ParsePolicy(benchPolicy(i)))
	}
	for i := range benchPods {
		m.SetPod(model.ParsePod(benchPod(i)))
	}
	return m
}

func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkStart is the first Refresh of a large cluster, and what its model keeps in memory.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		before := heap()
		m := large(b)
		b.ReportMetric((heap()-before)/(1<<20), "MiB")
		b.StartTimer()
		c := m.Refresh()
		b.StopTimer()
		b.ReportMetric((heap()-before)/(1<<20), "MiB-refreshed")
		b.ReportMetric(float64(len(c.Sets)), "sets")
		b.ReportMetric(float64(m.Stats().Members), "members")
		runtime.KeepAlive(m)
		b.StartTimer()
	}
}

// BenchmarkEvents is one event each, and the Refresh after it, in a large cluster.
func BenchmarkEvents(b *testing.B) {
	m := large(b)
	m.Refresh()
	relabel := func(i int, label, value string) *corev1.Pod {
		p := benchPod(i)
		p.Labels[label] = value
		return p
	}
	// The first pod is on this node, and so are those of its number modulo.
	const local, remote = 0, 1
	wider := benchPolicy(0)
	wider.Spec.Ingress = wider.Spec.Ingress[:2]
	for _, tt := range []struct {
		name string
		a, b func()
	}{
		{"pod/same", setPod(m, benchPod(remote)), setPod(m, benchPod(remote))},
		{"pod/unselected", setPod(m, relabel(remote+1, "x", "1")), setPod(m, relabel(remote+1, "x", "2"))},
		{"pod/selected", setPod(m, relabel(10_000, "app", "app-1")), setPod(m, relabel(10_000, "app", "none"))},
		{"pod/local", setPod(m, relabel(local, "app", "none")), setPod(m, benchPod(local))},
		{"namespace/label", func() { m.SetNamespace(model.ParseNamespace(benchNamespace(7, 3))) }, func() { m.SetNamespace(model.ParseNamespace(benchNamespace(7, 7))) }},
		{"policy/local", func() { m.SetPolicy(model.ParsePolicy(wider)) }, func() { m.SetPolicy(model.ParsePolicy(benchPolicy(0))) }},
		{"policy/remote", func() { m.DeletePolicy(types.NamespacedName{Namespace: "team-7", Name: "app-5"}) }, func() { m.SetPolicy(model.ParsePolicy(benchPolicy(5007))) }},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			changed := 0
			n := 0
			for b.Loop() {
				if n++; n%2 == 1 {
					tt.a()
				} else {
					tt.b()
				}
				if c := m.Refresh(); !c.Empty() {
					changed++
				}
			}
			b.ReportMetric(float64(changed)/float64(n), "changes/op")
			tt.b()
			m.Refresh()
		})
	}
}

func setPod(m *model.Model, p *corev1.Pod) func() {
	return func() { m.SetPod(model.ParsePod(p)) }
}

// BenchmarkSetComesIntoUse is a pod of this node that changes its policy in a namespace of
// many pods, ten of which are in the set of each policy.
func BenchmarkSetComesIntoUse(b *testing.B) {
	for _, pods := range []int{100, 10_000} {
		b.Run(fmt.Sprint("pods=", pods), func(b *testing.B) {
			m := model.New(model.Config{NodeName: node})
			m.SetNamespace(model.ParseNamespace(benchNamespace(0, 0)))
			for i := range 20 {
				o := benchPolicy(i % 10 * benchNamespaces)
				o.Name, o.Spec.PodSelector.MatchLabels["app"] = fmt.Sprint("app-", i), fmt.Sprint("app-", i)
				o.Spec.Ingress = o.Spec.Ingress[:1]
				o.Spec.Ingress[0].From[0].PodSelector.MatchLabels["app"] = fmt.Sprint("from-", i)
				m.SetPolicy(model.ParsePolicy(o))
			}
			for i := range pods {
				p := benchPod(i * benchNamespaces)
				p.Labels["app"], p.Spec.NodeName = fmt.Sprint("from-", i/10), "node-2"
				p.Status.PodIP = fmt.Sprintf("10.0.%d.%d", i>>8, i&255)
				p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
				m.SetPod(model.ParsePod(p))
			}
			local := benchPod(1_000_000_000)
			local.Spec.NodeName, local.Status.PodIP, local.Status.PodIPs = node, "10.1.0.1", []corev1.PodIP{{IP: "10.1.0.1"}}
			n := 0
			for b.Loop() {
				n++
				local.Labels["app"] = fmt.Sprint("app-", n%2)
				m.SetPod(model.ParsePod(local))
				if c := m.Refresh(); len(c.Sets) == 0 || n > 1 && len(c.Sets) != 2 {
					b.Fatalf("%d sets change: want one that comes into use and one that goes", len(c.Sets))
				}
			}
			b.ReportMetric(float64(m.Stats().Members), "members")
		})
	}
}
