package scale

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// localPods is the number of pods on the measured node.
const localPods = 110

type policySize struct{ pods, namespaces, policies int }

func parsePolicySize(s string) (policySize, error) {
	var n [3]int
	parts := strings.Split(s, "x")
	for i := range n {
		var err error
		if len(parts) == len(n) {
			n[i], err = strconv.Atoi(parts[i])
		}
		if err != nil || n[i] < 1 {
			return policySize{}, fmt.Errorf("size %q: want PODSxNAMESPACESxPOLICIES", s)
		}
	}
	if n[0] < 2*localPods || n[0] > 1<<20 {
		return policySize{}, fmt.Errorf("size %q: want %d to %d pods", s, 2*localPods, 1<<20)
	}
	return policySize{n[0], n[1], n[2]}, nil
}

func (s policySize) String() string { return fmt.Sprintf("%dx%dx%d", s.pods, s.namespaces, s.policies) }

func policyNamespace(i int) string { return fmt.Sprintf("team-%04d", i) }

// The first localPods are on the measured node.
func (s policySize) pod(i int) *corev1.Pod {
	on := nodeName(i % nodes)
	if i < localPods {
		on = node
	}
	addr := netip.AddrFrom4([4]byte{10, byte(64 + i>>16), byte(i >> 8), byte(i)}).String()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("pod-%06d", i), Namespace: policyNamespace(i % s.namespaces), UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)),
			Labels: map[string]string{"app": fmt.Sprintf("app-%d", i/s.namespaces%10), "pod-template-hash": fmt.Sprintf("%08x", i)},
		},
		Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{
			Name: "main", Image: "registry.example/main:1", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: addr, PodIPs: []corev1.PodIP{{IP: addr}}},
	}
}

// By a policy, one app of a namespace accepts another app in it; one policy of ten also accepts an app
// of every namespace.
func (s policySize) policy(i int) *networkingv1.NetworkPolicy {
	app := func(n int) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", n%10)}}
	}
	turn := i / s.namespaces
	from := []networkingv1.NetworkPolicyPeer{{PodSelector: app(turn + 1)}}
	if i%10 == 0 {
		from = append(from, networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}, PodSelector: app(9)})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("policy-%05d", i), Namespace: policyNamespace(i % s.namespaces)},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *app(turn), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: from, Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(8080))}}}},
		},
	}
}

func (a *api) fillPolicies(ctx context.Context, s policySize) error {
	var work []func() error
	for i := range s.namespaces {
		work = append(work, func() error {
			o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: policyNamespace(i), Labels: map[string]string{"team": strconv.Itoa(i % 10)}}}
			_, err := a.client.CoreV1().Namespaces().Create(ctx, o, metav1.CreateOptions{})
			return err
		})
	}
	for i := range s.policies {
		work = append(work, func() error {
			o := s.policy(i)
			_, err := a.client.NetworkingV1().NetworkPolicies(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
			return err
		})
	}
	for i := range s.pods {
		work = append(work, func() error {
			o := s.pod(i)
			_, err := a.client.CoreV1().Pods(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
			return err
		})
	}
	if err := parallel(writers, work); err != nil {
		return fmt.Errorf("write %s pods, namespaces and policies to the API: %w", s, err)
	}
	return nil
}
