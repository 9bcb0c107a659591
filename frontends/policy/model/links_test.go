package model

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestLinks(t *testing.T) {
	m := New(Config{NodeName: "here"})
	pod := func(name, addr string) {
		m.SetPod(ParsePod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
			Spec:       corev1.PodSpec{NodeName: "here"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: addr, PodIPs: []corev1.PodIP{{IP: addr}}},
		}))
	}
	routed, bridged := Link{Name: "veth1"}, Link{Name: "port1", Bridged: true}
	own, second := netip.MustParseAddr("fd00::1"), netip.MustParseAddr("10.0.0.5")
	step := func(name string, do func(), want Link, addresses ...netip.Addr) {
		t.Helper()
		do()
		m.Refresh()
		got := m.outcome["a"]
		if got == nil || got.Link != want || !slices.Equal(got.Addresses, addresses) {
			t.Errorf("%s: %+v, want %+v with %v", name, got, want, addresses)
		}
	}
	step("no link", func() { pod("a", "fd00::1") }, Link{}, own)
	step("a route to another address", func() { m.SetLink(second, routed) }, Link{}, own)
	step("and to its own", func() { m.SetLink(own, routed) }, routed, own, second)
	step("a pod that shares the interface", func() { pod("b", "10.0.0.5") }, Link{}, own)
	step("the pod is gone", func() { m.DeletePod(types.NamespacedName{Namespace: "shop", Name: "b"}) }, routed, own, second)
	step("a port of a bridge", func() { m.SetLink(own, bridged) }, bridged, own)
	step("an address that the pod says it has", func() { m.SetLink(second, bridged) }, bridged, own)
	step("the interface is gone", func() { m.SetLink(own, Link{}); m.SetLink(second, Link{}) }, Link{}, own)
	if len(m.links.of)+len(m.links.at) > 0 {
		t.Errorf("left: %v, %v", m.links.of, m.links.at)
	}
}
