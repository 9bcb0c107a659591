package model

import (
	"fmt"
	"maps"
	goslices "slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// of gives an endpoint the pod default/name; an empty UID is none.
func of(name, uid string) func(*discoveryv1.Endpoint) {
	return func(e *discoveryv1.Endpoint) {
		e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: name, UID: types.UID(uid)}
	}
}

// word is the kubelet's about a pod.
type word struct {
	PodID
	PodState
}

func pod(name, uid string, state PodState) word {
	return word{PodID{key(name), types.UID(uid)}, state}
}

// say stores words, and sayAll replaces all.
func (m *Model) say(words ...word) {
	for _, w := range words {
		m.Pods().Set(w.PodID, w.PodState)
	}
}

func (m *Model) sayAll(words ...word) {
	all := make(map[PodID]PodState)
	for _, w := range words {
		all[w.PodID] = w.PodState
	}
	m.Pods().SetAll(all)
}

// local is a Service with a health check node port, and the endpoint of pod a on this node.
func local(options ...func(*discoveryv1.Endpoint)) (*corev1.Service, *discoveryv1.EndpointSlice) {
	s := svc("web", "10.96.0.1", 80)
	s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
	s.Spec.HealthCheckNodePort = 32000
	return s, eps("web-1", "web", ep("10.1.0.1", append([]func(*discoveryv1.Endpoint){on("n1"), of("a", "1")}, options...)...), ep("10.1.0.2", on("n2"), of("b", "2")))
}

// outcome has the lists of endpoints of the first port, the count for the health check, and the endpoints held out.
func outcome(m *Model) string {
	m.Refresh()
	s := m.Service(key("web"))
	b := &s.Ports[0].Backends[IPv4]
	return fmt.Sprintf("cluster %s, local %s, ready %d, held %d", text(b.Cluster), text(b.Local), s.LocalReady[IPv4], m.Pods().HeldOut())
}

const (
	both    = "cluster 10.1.0.1:8080* 10.1.0.2:8080, local 10.1.0.1:8080*, ready 1, held 0"
	heldOut = "cluster 10.1.0.2:8080, local , ready 0, held 1"
	// The only local endpoint serves while it terminates.
	drains = "cluster 10.1.0.2:8080, local 10.1.0.1:8080*, ready 0, held 1"
)

// TestPodStates has each word of the kubelet about the pod of a ready endpoint.
//
// Behaviour: 171, 172, 173.
func TestPodStates(t *testing.T) {
	for _, tt := range []struct {
		name    string
		pod     word
		publish bool
		options []func(*discoveryv1.Endpoint)
		want    string
	}{
		{name: "ready", pod: pod("a", "1", PodReady), want: both},
		{name: "not ready", pod: pod("a", "1", PodNotReady), want: heldOut},
		{name: "terminating", pod: pod("a", "1", PodServing), want: drains},
		{name: "terminating, not ready", pod: pod("a", "1", PodStopping), want: heldOut},
		{name: "gone", pod: pod("a", "1", PodGone), want: heldOut},
		{name: "another pod of the name", pod: pod("a", "9", PodNotReady), want: both},
		{name: "not of this node", pod: pod("b", "2", PodNotReady), want: both},
		{name: "without UID", pod: pod("a", "1", PodNotReady), options: []func(*discoveryv1.Endpoint){of("a", "")}, want: heldOut},
		{name: "without target", pod: pod("a", "1", PodNotReady), options: []func(*discoveryv1.Endpoint){func(e *discoveryv1.Endpoint) { e.TargetRef = nil }}, want: both},
		{name: "target is not a pod", pod: pod("a", "1", PodNotReady), options: []func(*discoveryv1.Endpoint){func(e *discoveryv1.Endpoint) { e.TargetRef.Kind = "Node" }}, want: both},
		{name: "not ready, published", pod: pod("a", "1", PodNotReady), publish: true, want: both},
		{name: "terminating, published", pod: pod("a", "1", PodServing), publish: true, want: both},
		{name: "gone, published", pod: pod("a", "1", PodGone), publish: true, want: heldOut},
		{name: "nothing is added to the API", pod: pod("a", "1", PodReady), options: []func(*discoveryv1.Endpoint){conditions(false, false, false)},
			want: "cluster 10.1.0.2:8080, local , ready 0, held 0"},
		{name: "both say it", pod: pod("a", "1", PodNotReady), options: []func(*discoveryv1.Endpoint){conditions(false, false, false)},
			want: "cluster 10.1.0.2:8080, local , ready 0, held 0"},
		{name: "both say terminating", pod: pod("a", "1", PodServing), options: []func(*discoveryv1.Endpoint){conditions(false, true, true)},
			want: "cluster 10.1.0.2:8080, local 10.1.0.1:8080*, ready 0, held 0"},
	} {
		for _, order := range []string{"service slice pod", "pod slice service", "slice pod service", "service pod slice"} {
			s, e := local(tt.options...)
			s.Spec.PublishNotReadyAddresses = tt.publish
			m := New(Config{NodeName: "n1"})
			for what := range strings.FieldsSeq(order) {
				switch what {
				case "service":
					m.SetService(s)
				case "slice":
					m.SetSlice(e)
				case "pod":
					m.say(tt.pod)
				}
			}
			publishtest.Equal(t, tt.name+": "+order, outcome(m), tt.want)
		}
	}
}

// TestPodsComeBack: the API decides again once the kubelet calls the pod ready, or nothing is known of pods.
// PublishNotReadyAddresses counts from the moment that it changes.
//
// Behaviour: 171, 173, 174.
func TestPodsComeBack(t *testing.T) {
	s, e := local()
	m := New(Config{NodeName: "n1"})
	m.SetService(s)
	m.SetSlice(e)
	step := func(what, want string) { t.Helper(); publishtest.Equal(t, what, outcome(m), want) }
	for range 2 {
		m.say(pod("a", "1", PodNotReady))
		step("not ready", heldOut)
		m.say(pod("a", "1", PodReady))
		step("ready", both)
	}
	m.sayAll(pod("a", "1", PodNotReady), pod("c", "3", PodGone))
	step("a list", heldOut)
	published := s.DeepCopy()
	published.Spec.PublishNotReadyAddresses = true
	m.SetService(published)
	step("published", both)
	m.SetService(s)
	step("not published", heldOut)
	m.Pods().SetAll(nil)
	step("nothing is known", both)
	m.say(pod("a", "1", PodGone))
	m.SetSlice(eps("web-1", "web", ep("10.1.0.1", on("n1"), of("a", "5")), ep("10.1.0.2", on("n2"))))
	step("a new pod with the name and address", both)
	m.DeleteSlice(key("web-1"))
	m.Pods().SetAll(nil)
	if len(m.pods.of)+len(m.pods.slices)+m.Pods().HeldOut() != 0 {
		t.Errorf("left: %+v", m.pods)
	}
}

// TestPodsOfAllEndpoints: without ready endpoints those count that serve while they terminate.
//
// Behaviour: 172.
func TestPodsOfAllEndpoints(t *testing.T) {
	s, e := local()
	e.Endpoints = e.Endpoints[:1]
	m := New(Config{NodeName: "n1"})
	m.SetService(s)
	m.SetSlice(e)
	m.say(pod("a", "1", PodServing))
	publishtest.Equal(t, "terminating", outcome(m), "cluster 10.1.0.1:8080*, local 10.1.0.1:8080*, ready 0, held 1")
	m.say(pod("a", "1", PodStopping))
	publishtest.Equal(t, "not serving", outcome(m), "cluster , local , ready 0, held 1")
}

// TestPodsCost: a pod costs what its endpoints do. Without a change of readiness nothing is looked at.
//
// Behaviour: 175.
func TestPodsCost(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	for i := range 500 {
		name := fmt.Sprint("s", i)
		m.SetService(svc(name, fmt.Sprintf("10.96.%d.%d", i/250, i%250+1), 80))
		m.SetSlice(eps(name, name, ep("10.1.0.1", on("n1"), of(name, name))))
	}
	m.Refresh()
	work := func() uint64 {
		before := m.Stats().Work
		m.Refresh()
		return m.Stats().Work - before
	}
	m.say(pod("s7", "s7", PodNotReady))
	if got := work(); got == 0 || got > 20 {
		t.Errorf("work %d of one pod", got)
	}
	for _, p := range []word{pod("s7", "s7", PodNotReady), pod("none", "none", PodNotReady), pod("s8", "s8", PodReady)} {
		if m.say(p); m.Dirty() {
			t.Errorf("%+v makes work", p)
		}
	}
	m.sayAll(pod("s7", "s7", PodNotReady), pod("none", "none", PodNotReady))
	if m.Dirty() {
		t.Error("the same list makes work")
	}
}

// TestPodsWhy: candidates say what the kubelet says before the API does.
//
// Behaviour: 177.
func TestPodsWhy(t *testing.T) {
	s, e := local()
	m := New(Config{NodeName: "n1"})
	m.SetService(s)
	m.SetSlice(e)
	why := func() string {
		all, _ := m.Candidates(key("web"))
		return all[0].Why(false)
	}
	for state, want := range map[PodState]string{
		PodReady: "", PodNotReady: "the kubelet says that its pod is not ready; the API does not yet", PodGone: "the kubelet says that its pod is gone; the API does not yet",
		PodServing: "the kubelet says that its pod is being deleted; the API does not yet", PodStopping: "the kubelet says that its pod is being deleted and not ready; the API does not yet",
	} {
		m.say(pod("a", "1", state))
		publishtest.Equal(t, fmt.Sprint("state ", state), why(), want)
	}
	m.say(pod("a", "1", PodNotReady))
	conditions(false, false, false)(&e.Endpoints[0])
	m.SetSlice(e)
	publishtest.Equal(t, "the API says it too", why(), "not ready")
}

// TestPodsDependOnTheLastWord: after any changes in any order, the model is that of a fresh one with the last
// words, and no endpoint is better than without a kubelet.
//
// Behaviour: 171.
func TestPodsDependOnTheLastWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(Config{NodeName: "n1"})
		m.lists.largeSize = pick(t, "a lot", 1, largeSize)
		pods, slices := make(map[PodID]word), make(map[string]*discoveryv1.EndpointSlice)
		s, _ := local()
		m.SetService(s)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch name := pick(t, "name", "a", "b", "c"); pick(t, "kind", "pod", "pod", "slice", "gone", "service", "list") {
			case "pod":
				p := pod(name, name, PodState(rapid.IntRange(0, int(PodGone)).Draw(t, "state")))
				pods[p.PodID] = p
				m.say(p)
			case "slice":
				e := drawSlice(t, name, []string{"web"})
				for i := range e.Endpoints {
					pod := pick(t, "pod", "a", "b", "c")
					of(pod, pick(t, "uid", pod, ""))(&e.Endpoints[i])
				}
				slices[name] = e
				m.SetSlice(e)
			case "gone":
				delete(slices, name)
				m.DeleteSlice(key(name))
			case "service":
				s = s.DeepCopy()
				s.Spec.PublishNotReadyAddresses = rapid.Bool().Draw(t, "publish")
				m.SetService(s)
			case "list":
				m.sayAll(goslices.Collect(maps.Values(pods))...)
			}
			if rapid.Bool().Draw(t, "refresh") {
				m.Refresh()
			}
		}
		fresh, alone := New(Config{NodeName: "n1"}), New(Config{NodeName: "n1"})
		for _, e := range slices {
			fresh.SetSlice(e)
			alone.SetSlice(e)
		}
		for _, p := range pods {
			fresh.say(p)
		}
		fresh.SetService(s)
		alone.SetService(s)
		if got, want := outcome(m), outcome(fresh); got != want {
			t.Fatalf("%s, of a fresh model %s", got, want)
		}
		for name, e := range m.slices {
			for i := range e.targets {
				at := e.targets[i].at
				if has, api := flags(e.endpoints[at]), flags(alone.slices[name].endpoints[at]); has.state() < api.state() || has&^(3<<stateBits|terminating) != api&^(3<<stateBits|terminating) {
					t.Fatalf("flags %x, of the API %x", has, api)
				}
			}
		}
		if alone.Pods().HeldOut() != 0 {
			t.Fatal("endpoints are held out without a kubelet")
		}
	})
}
