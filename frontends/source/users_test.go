package source

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// podInfo is what a policy frontend might keep of a Pod.
type podInfo struct {
	labels map[string]string
	ip     string
}

// pods is a user with a kind of its own: the Pods of a node, with their labels.
type pods struct {
	*recorder
	infos map[types.NamespacedName]podInfo
}

func newPods() *pods {
	return &pods{recorder: newRecorder(), infos: make(map[types.NamespacedName]podInfo)}
}

func (p *pods) kind() AnyKind {
	return Kind[*corev1.Pod, podInfo]{
		Resource: corev1.SchemeGroupVersion.WithResource("pods"), Object: &corev1.Pod{}, Namespaced: true,
		LabelSelector: "!ignored", FieldSelector: "spec.nodeName=n1",
		Fields: func(o *corev1.Pod) fields.Set { return fields.Set{"spec.nodeName": o.Spec.NodeName} },
		Decode: func(o *corev1.Pod) podInfo { return podInfo{maps.Clone(o.Labels), o.Status.PodIP} },
		Set: func(n types.NamespacedName, v podInfo) {
			p.infos[n] = v
			p.objects["Pod "+n.String()] = v.labels["app"] + "@" + v.ip
		},
		Delete: func(n types.NamespacedName) {
			delete(p.infos, n)
			delete(p.objects, "Pod "+n.String())
			p.gone++
		},
	}
}

func pod(name, node, app, ip string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{PodIP: ip},
	}
}

// cluster is a source whose objects a test changes: an API server, or a directory.
type cluster struct {
	Source
	set    func(...apitest.Object)
	remove func(...apitest.Object)
}

func clusters(t *testing.T) map[string]cluster {
	t.Helper()
	api, dir := apitest.New(t), t.TempDir()
	files, err := NewManifests(dir, nil)
	must(t, err)
	file := func(o apitest.Object) string { return fmt.Sprintf("%T-%s.yaml", o, o.GetName())[len("*v1."):] }
	return map[string]cluster{
		"api": {kubeOf(t, api, KubeConfig{}), api.Set, api.Delete},
		"manifests": {files, func(objects ...apitest.Object) {
			for _, o := range objects {
				b, err := yaml.Marshal(o)
				must(t, err)
				write(t, dir, file(o), string(b))
			}
		}, func(objects ...apitest.Object) {
			for _, o := range objects {
				must(t, os.Remove(filepath.Join(dir, file(o))))
			}
		}},
	}
}

// typed sets the kind in an object, which a manifest needs.
func typed[O apitest.Object](o O, kind string) O {
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	return o
}

// TestSecondUser has a user with a kind of its own beside the service frontend's: each
// is synced, each gets what it selects, and selectors work alike in both sources.
func TestSecondUser(t *testing.T) {
	for name, c := range clusters(t) {
		t.Run(name, func(t *testing.T) {
			labelled := pod("ignored", "n1", "x", "10.1.0.9")
			labelled.Labels["ignored"] = ""
			c.set(pod("a", "n1", "web", "10.1.0.1"), pod("b", "n2", "web", "10.1.0.2"), labelled, typed(kubeService("s", "10.96.0.1"), "Service"),
				typed(kubeNode("n1"), "Node"), typed(kubeNode("n2"), "Node"))
			p := newPods()
			must(t, c.Subscribe(p.subscribed(p.kind())))
			r := follow(t, c)
			p.await(t, "Pod default/a=web@10.1.0.1")
			r.await(t, "Service default/s=10.96.0.1", "Node n1=1")
			c.set(pod("a", "n1", "db", "10.1.0.1"), pod("b", "n1", "web", "10.1.0.2"))
			p.await(t, "Pod default/a=db@10.1.0.1", "Pod default/b=web@10.1.0.2")
			// An object that a selector no longer matches is deleted for its user.
			c.set(pod("b", "n2", "web", "10.1.0.2"))
			p.await(t, "Pod default/a=db@10.1.0.1")
			c.remove(pod("a", "n1", "", ""), pod("b", "n2", "", ""))
			p.await(t)
			if len(p.infos) != 0 {
				t.Errorf("left over: %v", p.infos)
			}
			r.await(t, "Service default/s=10.96.0.1", "Node n1=1")
		})
	}
}

// TestSharedWatch has two users of the same kind: there is one watch, and what one of
// them does to its copy of an object does not reach the other.
func TestSharedWatch(t *testing.T) {
	for name, c := range clusters(t) {
		t.Run(name, func(t *testing.T) {
			c.set(typed(kubeService("s", "10.96.0.1"), "Service"))
			one, two := newRecorder(), newRecorder()
			spoil := serviceKind(one)
			spoil.Decode = func(s *corev1.Service) string {
				s.Spec.ClusterIP = "spoiled"
				return s.Spec.ClusterIP
			}
			for _, sub := range []Subscription{one.subscribed(spoil), two.subscribed(serviceKind(two))} {
				must(t, c.Subscribe(sub))
			}
			three := follow(t, c)
			one.await(t, "Service default/s=spoiled")
			two.await(t, "Service default/s=10.96.0.1")
			three.await(t, "Service default/s=10.96.0.1")
			if k, ok := c.Source.(*Kube); ok && len(k.watches) != 4 {
				t.Errorf("%d watches for 4 kinds", len(k.watches))
			}
		})
	}
}

// TestSyncedPerUser lets one user be synced while the list of another's kind hangs.
func TestSyncedPerUser(t *testing.T) {
	api := apitest.New(t)
	api.Set(pod("a", "n1", "web", "10.1.0.1"), kubeService("s", "10.96.0.1"))
	hold := make(chan struct{})
	api.Fault(faulty("pods", apitest.Fault{Hold: hold}))
	k := kubeOf(t, api, KubeConfig{})
	p := newPods()
	must(t, k.Subscribe(p.subscribed(p.kind())))
	r := follow(t, k)
	r.await(t, "Service default/s=10.96.0.1")
	if p.syncedNow() != 0 {
		t.Error("the user of pods is synced")
	}
	close(hold)
	p.await(t, "Pod default/a=web@10.1.0.1")
}

// TestCustomResource follows a resource that appears and disappears at run time, as
// with its CustomResourceDefinition: its objects are deleted with it.
func TestCustomResource(t *testing.T) {
	api := apitest.New(t)
	api.Set(kubeCIDR("policy", "10.0.0.0/8"), kubeService("s", "10.96.0.1"))
	missing := faulty("servicecidrs", apitest.Fault{Status: http.StatusNotFound})
	api.Fault(missing)
	k := kubeOf(t, api, KubeConfig{})
	k.retryAbsent, k.grace = 10*time.Millisecond, time.Hour
	r := newRecorder()
	custom := kindOf(r, networkingv1.SchemeGroupVersion, "servicecidrs", &networkingv1.ServiceCIDR{}, func(c *networkingv1.ServiceCIDR) string {
		return strings.Join(c.Spec.CIDRs, ",")
	})
	custom.Presence = Custom
	must(t, k.Subscribe(r.subscribed(serviceKind(r), custom)))
	run(t, k)
	r.await(t, "Service default/s=10.96.0.1")
	for range 2 {
		api.Fault(nil)
		r.await(t, "Service default/s=10.96.0.1", "ServiceCIDR policy=10.0.0.0/8")
		api.Fault(missing)
		api.Cut()
		r.await(t, "Service default/s=10.96.0.1")
	}
	// Losing the right to list does not delete anything.
	api.Fault(nil)
	r.await(t, "Service default/s=10.96.0.1", "ServiceCIDR policy=10.0.0.0/8")
	gone := r.gone
	api.Fault(faulty("servicecidrs", apitest.Fault{Status: http.StatusForbidden}))
	api.Cut()
	api.Forget()
	aggregatortest.Eventually(t, "several attempts", func() bool { return len(api.Requests("servicecidrs")) >= 5 })
	r.lostNothing(t, gone)
}

// TestSubscribeErrors refuses what cannot be followed.
func TestSubscribeErrors(t *testing.T) {
	r := newRecorder()
	edit := func(f func(*Kind[*corev1.Service, string])) Subscription {
		k := serviceKind(r)
		f(&k)
		return r.subscribed(k)
	}
	for want, sub := range map[string]Subscription{
		"User, Kinds and Deliver": {User: "x"},
		"are required":            edit(func(k *Kind[*corev1.Service, string]) { k.Decode = nil }),
		"label selector":          edit(func(k *Kind[*corev1.Service, string]) { k.LabelSelector = "a in" }),
		"field selector":          edit(func(k *Kind[*corev1.Service, string]) { k.FieldSelector = "a" }),
		"does not return":         edit(func(k *Kind[*corev1.Service, string]) { k.Fields = nil }),
	} {
		for name, c := range clusters(t) {
			if err := c.Subscribe(sub); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", name, err, want)
			}
		}
	}
	k := kubeOf(t, apitest.New(t), KubeConfig{})
	subscribe(t, k, r)
	if err := k.Subscribe(edit(func(k *Kind[*corev1.Service, string]) { k.Presence = Optional })); err == nil || !strings.Contains(err.Error(), "different from that of test") {
		t.Errorf("two users that disagree: %v", err)
	}
}

// TestChanges is a source of another package: it makes the events of a subscription.
func TestChanges(t *testing.T) {
	p := newPods()
	sub := p.subscribed(p.kind())
	changes, err := sub.Changes()
	must(t, err)
	here, moved := pod("a", "n1", "web", "10.0.0.1"), pod("a", "n2", "web", "10.0.0.1")
	for _, step := range []struct {
		what          string
		before, after Object
		want          string
	}{
		{"new", nil, here, "web@10.0.0.1"},
		{"no longer selected", here, moved, ""},
		{"never selected", moved, nil, ""},
		{"selected again", moved, here, "web@10.0.0.1"},
		{"deleted", here, nil, ""},
	} {
		for _, e := range changes(step.before, step.after) {
			if e.Resource() != "pods" {
				t.Errorf("%s: an event of %s: want pods", step.what, e.Resource())
			}
			e.Apply()
		}
		if got := p.objects["Pod default/a"]; got != step.want {
			t.Errorf("%s: the user has %q: want %q", step.what, got, step.want)
		}
	}
	if _, err := (&Subscription{User: "x"}).Changes(); err == nil {
		t.Error("a subscription without kinds is accepted")
	}
}
