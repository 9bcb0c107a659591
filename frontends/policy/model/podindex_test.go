package model

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestPodIndex asks for more keys than an index has, while pods come and go.
func TestPodIndex(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	pod := func(i int) *pod {
		o := &PodObject{podFacts: podFacts{name: types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("p", i)}}, labels: []label{{"app", fmt.Sprint(i % 2)}}}
		return m.newPod(o)
	}
	n := m.namespace("shop")
	for i := range 3 * maxIndexedKeys {
		p := pod(i)
		n.pods[p.key()] = p
		n.byLabel.add(p)
		if got := len(n.podsWith(label{fmt.Sprint("key-", i), "x"})); got != 0 {
			t.Fatalf("%d pods with key %d", got, i)
		}
		if got, want := len(n.podsWith(label{"app", "0"})), (i+2)/2; got != want {
			t.Fatalf("%d pods of %d with a label, want %d", got, i+1, want)
		}
		if len(n.byLabel) > maxIndexedKeys {
			t.Fatalf("%d keys", len(n.byLabel))
		}
	}
	for i := range 3 * maxIndexedKeys {
		p := n.pods[fmt.Sprint("p", i)]
		delete(n.pods, p.key())
		n.byLabel.remove(p)
	}
	if got := len(n.podsWith(label{"app", "0"})); got != 0 {
		t.Fatalf("%d pods are left", got)
	}
}
