package event

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

// run runs a recorder until stop is called, at the latest at the end of the test.
func run(t *testing.T, r *Recorder) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func newRecorder(t *testing.T, client *fake.Clientset, log *slog.Logger) *Recorder {
	t.Helper()
	r, err := New(Config{Client: client, NodeName: "node-1", Logger: log})
	publishtest.Must(t, err)
	return r
}

// await returns the events of a namespace once there are so many, sorted by
// reason.
func await(t *testing.T, client *fake.Clientset, namespace string, n int) []eventsv1.Event {
	t.Helper()
	var list *eventsv1.EventList
	publishtest.Await(t, "events", func() bool {
		var err error
		if list, err = client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		return len(list.Items) >= n
	})
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return strings.Compare(a.Reason, b.Reason) })
	return list.Items
}

// TestRecorder reports what a kube-proxy reports, on the same objects. The UID of a NetworkPolicy is looked up, too.
//
// Behaviour: 165.
func TestRecorder(t *testing.T) {
	client := fake.NewClientset(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name, UID: "uid-of-web"}},
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "pods", Name: "db", UID: "7"}})
	r := newRecorder(t, client, nil)
	// Events reported before Run are not lost.
	r.Node(Normal, Starting, "")
	run(t, r)
	r.Node(Warning, FailedToStartProxierHealthcheck, "listen on 0.0.0.0:10256: address in use")
	r.Node(Warning, FailedToStartMetricServer, "listen on 127.0.0.1:10249: address in use")
	r.Condition(Normal, "WeftRecovered", "services", "services: ok again")
	r.Condition(Normal, "WeftRecovered", "api-server", "api-server: ok again")
	r.Service(web, Warning, FailedToStartServiceHealthcheck, "100% of port 30000 is in use")
	r.Service(types.NamespacedName{Namespace: "shop", Name: "gone"}, Warning, "AddressTaken", strings.Repeat("ä", 1000))

	nodes := await(t, client, "default", 5)
	slices.SortStableFunc(nodes, func(a, b eventsv1.Event) int {
		return cmp.Or(strings.Compare(a.Reason, b.Reason), strings.Compare(a.Action, b.Action))
	})
	for i, want := range []string{
		"Warning FailedToStartMetricServer StartKubeProxy listen on 127.0.0.1:10249: address in use",
		"Warning FailedToStartProxierHealthcheck StartKubeProxy listen on 0.0.0.0:10256: address in use",
		"Normal Starting StartKubeProxy ",
		"Normal WeftRecovered api-server api-server: ok again",
		"Normal WeftRecovered services services: ok again",
	} {
		e := nodes[i]
		publishtest.Equal(t, "event", strings.Join([]string{e.Type, e.Reason, e.Action, e.Note}, " "), want)
		if e.Regarding.Kind != "Node" || e.Regarding.Name != "node-1" || e.Regarding.UID != "node-1" {
			t.Errorf("event on %+v", e.Regarding)
		}
		if e.ReportingController != "weft" || !strings.HasPrefix(e.ReportingInstance, "weft-") || e.EventTime.IsZero() {
			t.Errorf("reported by %q %q at %v", e.ReportingController, e.ReportingInstance, e.EventTime)
		}
	}
	services := await(t, client, "shop", 2)
	if e := services[0]; e.Regarding.Name != "gone" || e.Regarding.UID != "shop/gone" || len(e.Note) > maxMessage || len(e.Note) < maxMessage-8 || !utf8.ValidString(e.Note) {
		t.Errorf("event %+v with %d bytes", e.Regarding, len(e.Note))
	}
	if e := services[1]; e.Regarding.Kind != "Service" || e.Regarding.UID != "uid-of-web" || e.Action != "Listen" || e.Note != "100% of port 30000 is in use" {
		t.Errorf("event %+v: %s %q", e.Regarding, e.Action, e.Note)
	}
	r.Object(corev1.ObjectReference{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Namespace: "pods", Name: "db"}, Warning, "A", "no")
	r.Object(corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "pods", Name: "api"}, Warning, "B", "no")
	got := await(t, client, "pods", 2)
	for i, want := range []corev1.ObjectReference{{Kind: "NetworkPolicy", Name: "db", UID: "7"}, {Kind: "Pod", Name: "api", UID: "pods/api"}} {
		if r := got[i].Regarding; r.Kind != want.Kind || r.Name != want.Name || r.UID != want.UID {
			t.Errorf("event %d is about %+v, want %+v", i, r, want)
		}
	}
	r.Object(corev1.ObjectReference{Kind: "ClusterNetworkPolicy", Name: "base"}, Warning, "A", "no")
	if all := await(t, client, "default", 6); all[0].Regarding.UID != "base" {
		t.Errorf("the event about an object without a namespace is about %+v", all[0].Regarding)
	}
}

// TestRecorderCounts makes a series of repeated events.
func TestRecorderCounts(t *testing.T) {
	client := fake.NewClientset()
	r := newRecorder(t, client, nil)
	run(t, r)
	r.Service(web, Warning, "AddressTaken", "first")
	await(t, client, "shop", 1)
	r.Service(web, Warning, "AddressTaken", "again")
	publishtest.Await(t, "the series", func() bool {
		e := await(t, client, "shop", 1)
		return len(e) == 1 && e[0].Series != nil && e[0].Series.Count == 2
	})
}

// TestRecorderNeverBlocks floods a recorder while the API server does not answer.
func TestRecorderNeverBlocks(t *testing.T) {
	client := fake.NewClientset()
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	client.PrependReactor("*", "*", func(kubetesting.Action) (bool, kruntime.Object, error) {
		<-hold
		return true, nil, errors.New("no answer")
	})
	var log bytes.Buffer
	r := newRecorder(t, client, slog.New(slog.NewTextHandler(&log, nil)))
	for range 100_000 { // would never end if one of them waited
		r.Service(web, Warning, "AddressTaken", "by another")
	}
	publishtest.Equal(t, fmt.Sprintf("lines:\n%s", log.String()), strings.Count(log.String(), "dropped"), 1)
	run(t, r)
	publishtest.Await(t, "the first to be taken", func() bool { return len(r.queue) < maxQueue })
	r.Node(Normal, Starting, "")
	release()
}

// TestRecorderLimits sends a burst, and later events slowly.
func TestRecorderLimits(t *testing.T) {
	client := fake.NewClientset()
	r := newRecorder(t, client, nil)
	run(t, r)
	for i := range 2 * burst {
		r.Service(types.NamespacedName{Namespace: "shop", Name: strings.Repeat("x", i+1)}, Warning, "AddressTaken", "")
	}
	await(t, client, "shop", burst)
	publishtest.Await(t, "the rest to wait", func() bool { return len(r.queue) <= burst })
	if n := len(await(t, client, "shop", burst)); n > burst+1 {
		t.Errorf("%d events at once", n)
	}
}

// TestRecorderWithoutAPI does nothing, like a nil one.
func TestRecorderWithoutAPI(t *testing.T) {
	r, err := New(Config{NodeName: "node-1"})
	publishtest.Must(t, err)
	for _, r := range []*Recorder{r, nil} {
		for range 2 * maxQueue {
			r.Node(Normal, Starting, "")
			r.Service(web, Warning, "AddressTaken", "")
		}
		if err := r.Run(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(r.queue) != 0 {
		t.Error("events wait for no reader")
	}
	if _, err := New(Config{}); err == nil {
		t.Error("no error without a node name")
	}
}

// TestRecorderLeavesNothing ends while events cannot be written.
func TestRecorderLeavesNothing(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "events", func(kubetesting.Action) (bool, kruntime.Object, error) {
		return true, nil, errors.New("no answer")
	})
	r := newRecorder(t, client, nil)
	stop := run(t, r)
	r.Node(Normal, Starting, "")
	publishtest.Await(t, "an attempt", func() bool { return len(client.Actions()) > 0 })
	stop()
	publishtest.Await(t, "the end of the goroutines", func() bool {
		buf := make([]byte, 1<<20)
		return !strings.Contains(string(buf[:runtime.Stack(buf, true)]), "client-go/tools/events")
	})
}
