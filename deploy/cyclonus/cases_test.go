package cyclonus

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mattfenwick/cyclonus/pkg/connectivity/probe"
	"github.com/mattfenwick/cyclonus/pkg/generator"
	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

type place struct {
	node      string
	addresses []netip.Addr // IPv4, then IPv6
}

// podKeys are all pods of the cases: nine always, four at times.
func podKeys() []string {
	keys := []string{"w/a", "x/d", "y-2/a", "y-2/b"}
	for _, ns := range namespaces() {
		for _, pod := range []string{"a", "b", "c"} {
			keys = append(keys, ns+"/"+pod)
		}
	}
	slices.Sort(keys)
	return keys
}

func namespaces() []string { return []string{"x", "y", "z"} }

// step is the cluster after one step of a case, and the oracle's probes.
type step struct {
	name      string
	resources *probe.Resources
	policies  []*networkingv1.NetworkPolicy
	probe     *generator.ProbeConfig
}

// Cases with blocks of addresses appear twice, for the two families of their pod.
func allSteps(t *testing.T, places map[string]place) []*step {
	t.Helper()
	var all []*step
	var first []*generator.TestCase
	for family, addr := range places["z/c"].addresses {
		cases := generator.NewTestCaseGenerator(true, addr.String(), namespaces(), nil, nil).GenerateTestCases()
		if len(cases) != 230 {
			t.Fatalf("the oracle generates %d cases, want 230", len(cases))
		}
		for i, c := range cases {
			if family == 0 {
				first = cases
			} else if reflect.DeepEqual(c.Steps, first[i].Steps) {
				continue
			}
			all = append(all, caseSteps(t, fmt.Sprintf("case %d, IPv%d: %s", i+1, 4+2*family, c.Description), c)...)
		}
		if family == 0 && len(all) != 256 {
			t.Fatalf("the oracle generates %d steps, want 256", len(all))
		}
	}
	return all
}

func caseSteps(t *testing.T, name string, c *generator.TestCase) []*step {
	t.Helper()
	protocols := []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
	r := &probe.Resources{Namespaces: map[string]map[string]string{}}
	for _, ns := range namespaces() {
		r.Namespaces[ns] = map[string]string{"ns": ns, corev1.LabelMetadataName: ns}
		for _, pod := range []string{"a", "b", "c"} {
			r.Pods = append(r.Pods, probe.NewDefaultPod(ns, pod, []int{80, 81}, protocols, false, ""))
		}
	}
	var all []*step
	var policies []*networkingv1.NetworkPolicy
	for i, s := range c.Steps {
		for _, a := range s.Actions {
			var err error
			if r, policies, err = act(r, policies, a); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		all = append(all, &step{fmt.Sprintf("%s, step %d", name, i+1), r, policies, s.Probe})
	}
	return all
}

// act keeps its arguments unchanged.
func act(r *probe.Resources, policies []*networkingv1.NetworkPolicy, a *generator.Action) (*probe.Resources, []*networkingv1.NetworkPolicy, error) {
	without := func(namespace, name string) []*networkingv1.NetworkPolicy {
		return slices.DeleteFunc(slices.Clone(policies), func(p *networkingv1.NetworkPolicy) bool { return p.Namespace == namespace && p.Name == name })
	}
	var err error
	switch {
	case a.CreatePolicy != nil:
		policies = append(slices.Clone(policies), a.CreatePolicy.Policy)
	case a.UpdatePolicy != nil:
		p := a.UpdatePolicy.Policy
		policies = append(without(p.Namespace, p.Name), p)
	case a.DeletePolicy != nil:
		policies = without(a.DeletePolicy.Namespace, a.DeletePolicy.Name)
	case a.CreateNamespace != nil:
		r, err = r.CreateNamespace(a.CreateNamespace.Namespace, namespaceLabels(a.CreateNamespace.Namespace, a.CreateNamespace.Labels))
	case a.SetNamespaceLabels != nil:
		r, err = r.UpdateNamespaceLabels(a.SetNamespaceLabels.Namespace, namespaceLabels(a.SetNamespaceLabels.Namespace, a.SetNamespaceLabels.Labels))
	case a.DeleteNamespace != nil:
		r, err = r.DeleteNamespace(a.DeleteNamespace.Namespace)
	case a.CreatePod != nil:
		r, err = r.CreatePod(a.CreatePod.Namespace, a.CreatePod.Pod, a.CreatePod.Labels)
	case a.SetPodLabels != nil:
		r, err = r.SetPodLabels(a.SetPodLabels.Namespace, a.SetPodLabels.Pod, a.SetPodLabels.Labels)
	case a.DeletePod != nil:
		r, err = r.DeletePod(a.DeletePod.Namespace, a.DeletePod.Pod)
	default:
		err = fmt.Errorf("action of an unknown kind: %+v", a)
	}
	return r, policies, err
}

// namespaceLabels adds the API server's label.
func namespaceLabels(name string, labels map[string]string) map[string]string {
	labels = maps.Clone(labels)
	labels[corev1.LabelMetadataName] = name
	return labels
}

func (s *step) cluster(places map[string]place) *policytest.Cluster {
	c := policytest.NewCluster()
	for ns, labels := range s.resources.Namespaces {
		c.Namespaces[ns] = &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: ns, UID: types.UID(ns), Labels: labels},
		}
	}
	for _, p := range s.resources.Pods {
		key := p.PodString().String()
		pod := p.KubePod()
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		pod.UID = types.UID(strings.ReplaceAll(key, "/", "-"))
		pod.Spec.NodeName = places[key].node
		pod.Status.Phase = corev1.PodRunning
		for _, addr := range places[key].addresses {
			pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: addr.String()})
		}
		pod.Status.PodIP = pod.Status.PodIPs[0].IP
		c.Pods[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = pod
	}
	for _, p := range s.policies {
		p = p.DeepCopy()
		p.TypeMeta = metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}
		p.UID = types.UID(p.Namespace + "-" + p.Name)
		c.Policies[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p
	}
	return c
}

// flow has an expected result of the oracle.
type flow struct {
	from, to string // pods
	policytest.Flow
}

// expected returns the oracle's results between different pods, to every served port and the probed
// port, in both families. The oracle applies policies to a pod's traffic to itself; no network does.
func (s *step) expected(places map[string]place) map[flow]bool {
	policy := matcher.BuildNetworkPolicies(false, s.policies)
	want := map[flow]bool{}
	for family := range 2 {
		r := &probe.Resources{Namespaces: s.resources.Namespaces}
		for _, p := range s.resources.Pods {
			pod := *p
			pod.IP = places[p.PodString().String()].addresses[family].String()
			r.Pods = append(r.Pods, &pod)
		}
		for _, config := range []*generator.ProbeConfig{generator.NewAllAvailable(generator.ProbeModePodIP), s.probe} {
			config := *config
			config.Mode = generator.ProbeModePodIP
			for _, job := range (&probe.JobBuilder{}).GetJobsForProbeConfig(r, &config).Valid {
				if job.FromKey == job.ToKey {
					continue
				}
				want[flow{job.FromKey, job.ToKey, policytest.Flow{
					From: places[job.FromKey].addresses[family], To: places[job.ToKey].addresses[family],
					Protocol: job.Protocol, Port: int32(job.ResolvedPort),
				}}] = policy.IsTrafficAllowed(job.Traffic()).IsAllowed()
			}
		}
	}
	return want
}
