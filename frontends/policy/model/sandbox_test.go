package model_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// sandbox returns the sandbox with an ID of a pod in the namespace shop, from a text as pod
// has it: "a 10.0.0.1 app=a". The UID of the pod is "uid-a".
func sandbox(t *testing.T, id, text string) *model.SandboxObject {
	t.Helper()
	f := append(strings.Fields(text), "", "")
	s := &model.Sandbox{ID: id, UID: types.UID("uid-" + f[0]), Name: types.NamespacedName{Namespace: "shop", Name: f[0]}, Labels: map[string]string{
		"io.kubernetes.pod.name": f[0], "io.kubernetes.pod.namespace": "shop", "io.kubernetes.pod.uid": "uid-" + f[0],
	}}
	if f[1] != "" {
		s.Addresses = strings.Split(f[1], ",")
	}
	for pair := range strings.SplitSeq(f[2], ",") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			s.Labels[k] = v
		}
	}
	o, err := model.ParseSandbox(s)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// sandboxes has the runtime report sandboxes.
func (w *world) sandboxes(reported ...*model.SandboxObject) {
	w.t.Helper()
	for _, s := range reported {
		w.model.SetSandbox(s)
	}
	w.refresh()
}

// uidPod is pod with the UID that sandbox gives.
func uidPod(text string, more ...string) string {
	return strings.Replace(pod(text, more...), "metadata: {", "metadata: {uid: uid-"+strings.Fields(text)[0]+", ", 1)
}

// Only the pods app=b may reach the pods app=a.
var onlyB = policy("only-b", "podSelector: {matchLabels: {app: a}}, ingress: [{from: [{podSelector: {matchLabels: {app: b}}}]}]")

const (
	fromB     = "10.0.0.2 > 10.0.0.1 tcp/80"
	fromOther = "10.0.9.9 > 10.0.0.1 tcp/80"
)

func TestSandboxBeforeAPI(t *testing.T) {
	w := newWorld(t, onlyB)
	w.sandboxes(sandbox(t, "s1", "a 10.0.0.1 app=a"), sandbox(t, "s2", "b 10.0.0.2 app=b"))
	w.expect("+-", fromB, fromOther)

	// The Pod is the same pod: nothing changes.
	if c := w.set(uidPod("a 10.0.0.1 app=a"), uidPod("b 10.0.0.2 app=b")); !c.Empty() {
		t.Errorf("changes when the API reports the pods: %+v", c)
	}
	// The API knows newer labels.
	w.set(uidPod("b 10.0.0.2 app=c"))
	w.expect("--", fromB, fromOther)
}

// A sandbox that is created again has another address than the API knows.
func TestSandboxCreatedAgain(t *testing.T) {
	w := newWorld(t, onlyB, uidPod("a 10.0.0.7 app=a"), uidPod("b 10.0.0.2 app=b"))
	w.sandboxes(sandbox(t, "s2", "a 10.0.0.1 app=a"))
	w.expect("+-+-", fromB, fromOther, "10.0.0.2 > 10.0.0.7", "10.0.9.9 > 10.0.0.7")
	w.set(uidPod("a 10.0.0.1 app=a"))
	w.expect("+-++", fromB, fromOther, "10.0.0.2 > 10.0.0.7", "10.0.9.9 > 10.0.0.7")
	if n := len(w.Pods); n != 2 {
		t.Errorf("%d pods, want 2", n)
	}
	// Two sandboxes with one address count once.
	w.sandboxes(sandbox(t, "s3", "a 10.0.0.1,fd00::1 app=a"))
	if len(w.notices) > 0 {
		t.Errorf("notices %v", w.notices)
	}
}

func TestSetSandboxes(t *testing.T) {
	w := newWorld(t, onlyB)
	w.sandboxes(sandbox(t, "s1", "a 10.0.0.1 app=a"), sandbox(t, "s2", "b 10.0.0.2 app=b"))
	w.model.SetSandboxes([]*model.SandboxObject{sandbox(t, "s1", "a 10.0.0.1 app=a"), sandbox(t, "s3", "c 10.0.0.3 app=b")})
	w.refresh()
	w.expect("-+", fromB, "10.0.0.3 > 10.0.0.1")
	w.model.SetSandboxes(nil)
	w.refresh()
	if s := w.model.Stats(); s.LocalPods != 0 || s.Pods != 0 || s.Members != 0 {
		t.Errorf("%+v without sandboxes", s)
	}
}

// A wrong report of the runtime opens nothing.
func TestSandboxWrong(t *testing.T) {
	w := newWorld(t, onlyB, "Node "+node+" {status: {addresses: [{type: InternalIP, address: 10.1.0.1}]}}",
		uidPod("a 10.0.0.1 app=a"), uidPod("b 10.0.0.2 app=b"), uidPod("x 10.0.0.3 app=x"))
	// The address of another pod counts only if both are selected.
	w.sandboxes(sandbox(t, "s1", "fake-b 10.0.0.3 app=b"), sandbox(t, "s2", "fake-x 10.0.0.1 app=x"))
	w.expect("+--", fromB, fromOther, "10.0.0.3 > 10.0.0.1")
	if len(w.notices) != 2 || w.notices[0].Reason != model.AddressConflict {
		t.Errorf("notices %v", w.notices)
	}
	// Addresses that no pod has are ignored, and the second of a family is.
	w.sandboxes(sandbox(t, "s3", "node 10.1.0.1,127.0.0.1,x,fe80::1 app=b"), sandbox(t, "s4", "many 10.0.0.4,10.0.0.5 app=b"))
	w.expect("+-", "10.0.0.4 > 10.0.0.1", "10.0.0.5 > 10.0.0.1")
	if m := w.members(); strings.Contains(m, "10.1.0.1") || strings.Contains(m, "127.0.0.1") {
		t.Errorf("members %s", m)
	}
	// The UID of another pod.
	o, err := model.ParseSandbox(&model.Sandbox{ID: "s5", UID: "uid-new", Name: types.NamespacedName{Namespace: "shop", Name: "liar"}, Addresses: []string{"10.0.0.8"}})
	if err != nil {
		t.Fatal(err)
	}
	w.model.SetSandbox(o)
	w.set(uidPod("new 10.0.0.9 app=b"))
	w.expect("+", "10.0.0.9 > 10.0.0.1")
	w.delete(uidPod("new 10.0.0.9"))
	w.model.SetSandboxes(nil)
	w.refresh()
	if n := w.model.Stats().Pods; n != 3 {
		t.Errorf("%d pods, want 3", n)
	}
}

func TestParseSandboxInvalid(t *testing.T) {
	long := strings.Repeat("x", 600)
	many := make(map[string]string)
	for i := range 2000 {
		many[fmt.Sprint(i)] = ""
	}
	for name, change := range map[string]func(*model.Sandbox){
		"no ID":       func(s *model.Sandbox) { s.ID = "" },
		"long ID":     func(s *model.Sandbox) { s.ID = long },
		"no UID":      func(s *model.Sandbox) { s.UID = "" },
		"slash":       func(s *model.Sandbox) { s.UID = "a/b" },
		"namespace":   func(s *model.Sandbox) { s.Name.Namespace = "Not a namespace" },
		"name":        func(s *model.Sandbox) { s.Name.Name = "a\nb" },
		"many labels": func(s *model.Sandbox) { s.Labels = many },
		"long label":  func(s *model.Sandbox) { s.Labels = map[string]string{"a": long} },
	} {
		s := &model.Sandbox{ID: "s1", UID: "u", Name: types.NamespacedName{Namespace: "shop", Name: "a"}}
		change(s)
		if o, err := model.ParseSandbox(s); err == nil || o != nil || len(err.Error()) > 400 {
			t.Errorf("%s: %v, %v", name, o, err)
		}
	}
}

// TestSandboxOrder checks that the outcome depends only on what exists, not on the order in
// which the runtime and the API report it.
func TestSandboxOrder(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	names := []string{"a", "b", "c"}
	w := newWorld(t, onlyB)
	sandboxes, pods := make(map[string]*model.SandboxObject), make(map[string]string)
	for step := range 2000 {
		name := names[r.IntN(len(names))]
		text := fmt.Sprintf("%s 10.0.0.%d app=%s", name, r.IntN(4)+1, names[r.IntN(2)])
		id := fmt.Sprintf("s%d", r.IntN(5))
		switch r.IntN(5) {
		case 0:
			delete(sandboxes, id)
			w.model.DeleteSandbox(id)
		case 1, 2:
			sandboxes[id] = sandbox(t, id, text)
			w.model.SetSandbox(sandboxes[id])
		case 3:
			delete(pods, name)
			w.delete(uidPod(name + " 10.0.0.1"))
		case 4:
			pods[name] = uidPod(text)
			w.set(pods[name])
		}
		w.refresh()
		fresh := newWorld(t)
		for _, o := range sandboxes {
			fresh.model.SetSandbox(o)
		}
		for _, text := range pods {
			fresh.set(text)
		}
		fresh.set(onlyB)
		// A second pod for one name has the UID of its sandbox.
		got, want := fmt.Sprint(addresses(w)), fmt.Sprint(addresses(fresh))
		if got != want || w.members() != fresh.members() || !reflect.DeepEqual(w.Policies, fresh.Policies) {
			t.Fatalf("seed %d, step %d: after events %s, members %s; a fresh model has %s, %s", seed, step, got, w.members(), want, fresh.members())
		}
	}
}

// addresses returns the policies that apply to each address of a pod of the node.
func addresses(w *world) map[string]string {
	out := make(map[string]string)
	for _, p := range w.Pods {
		for _, a := range p.Addresses {
			out[a.String()] = fmt.Sprint(p.Policies)
		}
	}
	return out
}
