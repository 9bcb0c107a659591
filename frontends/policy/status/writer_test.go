package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

// cluster is an API server with one policy, and the writers of its nodes, which receive
// each change a while later.
type cluster struct {
	mu       sync.Mutex
	object   *v1alpha2.ClusterNetworkPolicy
	writers  []*Writer
	requests int
	writes   []metav1.Condition
	// latency is the time until all nodes know a change.
	latency time.Duration
	// fail is returned to each request if it is not nil.
	fail error
}

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	c := &cluster{object: admin(), latency: 100 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range nodes {
		w, err := New(Config{Client: fake.NewClientset(), NodeName: fmt.Sprintf("node-%04d", i)})
		must(t, err)
		w.send = c.apply
		c.writers = append(c.writers, w)
		wg.Go(func() { w.Run(ctx) })
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	return c
}

func admin() *v1alpha2.ClusterNetworkPolicy {
	return &v1alpha2.ClusterNetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: 1, ResourceVersion: "1"},
		Spec: v1alpha2.ClusterNetworkPolicySpec{
			Tier: v1alpha2.AdminTier, Subject: v1alpha2.ClusterNetworkPolicySubject{Namespaces: &metav1.LabelSelector{}},
			Ingress: []v1alpha2.ClusterNetworkPolicyIngressRule{{
				Action: v1alpha2.ClusterNetworkPolicyRuleActionDeny,
				From:   []v1alpha2.ClusterNetworkPolicyIngressPeer{{Namespaces: &metav1.LabelSelector{}}},
			}},
		},
	}
}

// apply is the request of a writer.
func (c *cluster) apply(_ context.Context, name string, patch []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	var body v1alpha2.ClusterNetworkPolicy
	if err := json.Unmarshal(patch, &body); err != nil {
		return err
	}
	switch {
	case c.fail != nil:
		return c.fail
	case name != c.object.Name || body.Name != name || body.Kind != "ClusterNetworkPolicy" || len(body.Status.Conditions) != 1:
		return fmt.Errorf("wrong request: %s", patch)
	case body.ResourceVersion != c.object.ResourceVersion:
		return apierrors.NewConflict(schema.GroupResource{}, name, errors.New("another version"))
	}
	c.writes = append(c.writes, body.Status.Conditions[0])
	c.object.Status = body.Status
	go func() {
		time.Sleep(c.latency) //nolint:forbidigo // of a bubble of synctest
		c.deliver()
	}()
	c.object.ResourceVersion += "1"
	return nil
}

// change changes the policy, and tells all nodes.
func (c *cluster) change(f func(*v1alpha2.ClusterNetworkPolicy)) {
	c.mu.Lock()
	f(c.object)
	c.object.ResourceVersion += "1"
	c.mu.Unlock()
	c.deliver()
}

// deliver tells all nodes the present form of the policy.
func (c *cluster) deliver() {
	c.mu.Lock()
	o := c.object.DeepCopy()
	c.mu.Unlock()
	for _, w := range c.writers {
		w.mu.Lock()
		w.set(o.Name, parse(o))
		w.mu.Unlock()
		w.wake()
	}
}

// await lets time pass, and compares what was written since the last call.
func (c *cluster) await(t *testing.T, what string, want ...string) {
	t.Helper()
	time.Sleep(3 * window) //nolint:forbidigo // of a bubble of synctest
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var got []string
	for _, w := range c.writes {
		if w.Type != Accepted || w.LastTransitionTime.IsZero() {
			t.Errorf("%s: condition %+v", what, w)
		}
		got = append(got, fmt.Sprintf("%s %s %d", w.Status, w.Reason, w.ObservedGeneration))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: conditions %q, want %q", what, got, want)
	}
	c.writes = nil
}

// TestFewRequests writes a condition once, with few requests, however many nodes there are.
func TestFewRequests(t *testing.T) {
	for _, nodes := range []int{1, 10, 300, 5000} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, nodes)
			c.deliver()
			c.await(t, "a new policy", "True Accepted 1")
			if c.requests > 10 {
				t.Errorf("%d nodes sent %d requests", nodes, c.requests)
			}
			t.Logf("%d nodes sent %d requests", nodes, c.requests)
			c.await(t, "no change")
		})
	}
}

// TestConditions follows a policy through its life.
func TestConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.deliver()
		c.await(t, "a new policy", "True Accepted 1")
		c.change(func(p *v1alpha2.ClusterNetworkPolicy) {
			p.Generation++
			p.Spec.Ingress[0].Action = "Shout"
		})
		c.await(t, "an invalid rule", "False Invalid 2")
		if m := c.object.Status.Conditions[0].Message; !strings.Contains(m, `unknown action "Shout"`) {
			t.Errorf("message %q", m)
		}
		c.change(func(p *v1alpha2.ClusterNetworkPolicy) {
			p.Generation++
			p.Spec.Ingress[0].Action = v1alpha2.ClusterNetworkPolicyRuleActionDeny
		})
		c.await(t, "a valid rule", "True Accepted 3")

		// One node rejects the policy, and the others do not replace that.
		c.writers[1].SetRejected(map[string]string{"p": strings.Repeat("too many rules ", 200)})
		c.await(t, "a rejection", "False RejectedOnNode 3")
		if m := c.object.Status.Conditions[0].Message; !strings.HasPrefix(m, "On node node-0001: too many") || len(m) > maxMessage {
			t.Errorf("message %q", m)
		}
		c.writers[2].SetRejected(map[string]string{"p": "too many rules"})
		c.await(t, "a second rejection")
		c.writers[2].SetRejected(nil)
		c.await(t, "the end of the second rejection")
		c.writers[1].SetRejected(nil)
		c.await(t, "the end of the rejection", "True Accepted 3")

		// Somebody removes the condition.
		c.change(func(p *v1alpha2.ClusterNetworkPolicy) { p.Status.Conditions = nil })
		c.await(t, "a removed condition", "True Accepted 3")

		// A deleted policy is not written any more.
		c.change(func(p *v1alpha2.ClusterNetworkPolicy) { p.Generation++ })
		for _, w := range c.writers {
			w.mu.Lock()
			delete(w.policies, "p")
			w.mu.Unlock()
		}
		c.await(t, "a deleted policy")
	})
}

// TestFailedRequest repeats a request, and logs why it failed.
func TestFailedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		var log bytes.Buffer
		c.writers[0].cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.fail = apierrors.NewForbidden(schema.GroupResource{Resource: "clusternetworkpolicies/status"}, "p", errors.New("no right"))
		c.deliver()
		c.await(t, "without the right")
		if !strings.Contains(log.String(), "no right") {
			t.Errorf("log %s", &log)
		}
		c.fail = nil
		c.await(t, "before the retry")
		c.await(t, "after the retry", "True Accepted 1")
		var none *Writer
		none.SetRejected(nil)
	})
	if _, err := New(Config{}); err == nil {
		t.Error("a writer without an API server")
	}
}

// TestRequest sends what an API server expects of a server-side apply of a status.
func TestRequest(t *testing.T) {
	got := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Method + " " + r.URL.String() + " " + r.Header.Get("Content-Type") + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`))
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	must(t, err)
	w, err := New(Config{Client: client, NodeName: "n"})
	must(t, err)
	p := parse(admin())
	c := p.condition("n", "")
	patch, err := p.patch("p", c)
	must(t, err)
	if err := w.send(t.Context(), "p", patch); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v", err)
	}
	want := `PATCH /apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies/p/status?fieldManager=weft&force=true application/apply-patch+yaml ` +
		`{"kind":"ClusterNetworkPolicy","apiVersion":"policy.networking.k8s.io/v1alpha2","metadata":{"name":"p","uid":"u","resourceVersion":"1"},` +
		`"status":{"conditions":[{"type":"Accepted","status":"True","observedGeneration":1,"lastTransitionTime":null,"reason":"Accepted","message":"All rules are enforced."}]}}`
	if r := <-got; r != want {
		t.Errorf("request\n%s\nwant\n%s", r, want)
	}
}

// TestSubscription follows policies through a source.
func TestSubscription(t *testing.T) {
	w, err := New(Config{Client: fake.NewClientset(), NodeName: "n"})
	must(t, err)
	s := w.Subscription()
	events, err := s.Changes()
	must(t, err)
	o := admin()
	o.Status.Conditions = []metav1.Condition{{Type: "Other"}, {Type: Accepted, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	s.Deliver(events(nil, o.DeepCopy()))
	if p := w.policies["p"]; p == nil || !p.due.IsZero() || p.present == nil {
		t.Errorf("a policy with the condition: %+v", p)
	}
	later := o.DeepCopy()
	later.Generation = 2
	s.Deliver(events(o, later))
	if p := w.policies["p"]; p.due.IsZero() {
		t.Errorf("a policy of which the condition is old: %+v", p)
	}
	if name, wait := w.next(); name != "p" || wait > window {
		t.Errorf("next is %q in %v", name, wait)
	}
	s.Deliver(events(later, nil))
	if name, _ := w.next(); name != "" || len(w.policies) > 0 {
		t.Errorf("a deleted policy: %q", name)
	}
	w.write(t.Context(), "p")
}
