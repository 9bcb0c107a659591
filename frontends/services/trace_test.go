package services

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// A trace is half an hour of a cluster in which little happens, but much is
// written: what an API server sends to a node between two deployments.
const (
	traceServices  = 1000
	traceEndpoints = 10
	traceLength    = 30 * time.Minute
	// traceBeat is how often this node's status is written: the kubelet's
	// default nodeStatusUpdateFrequency.
	traceBeat = 10 * time.Second
	// traceRelist is how often the watches break, every other time so that
	// everything is listed again.
	traceRelist  = 5 * time.Minute
	traceChanges = 20
)

// trace plays a cluster.
type trace struct {
	api      *apitest.Server
	random   *rand.Rand
	now      time.Time
	node     *corev1.Node
	services []*corev1.Service
	slices   []*discoveryv1.EndpointSlice
	// sent counts the objects that went to the node, in lists and watches.
	sent int
}

func newTrace(t *testing.T) *trace {
	t.Helper()
	p := &trace{api: apitest.New(t), random: rand.New(rand.NewPCG(1, 2)), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} //nolint:gosec // a trace that repeats
	p.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{corev1.LabelTopologyZone: "a"}}}
	p.node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	p.node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}}
	p.write(p.node)
	for i := range traceServices {
		p.add(i)
	}
	return p
}

// write sends an object as it is now, with what the server and controllers note
// in it whenever they write.
func (p *trace) write(o apitest.Object) {
	when := metav1.NewTime(p.now)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "controller", Operation: metav1.ManagedFieldsOperationUpdate, Time: &when}})
	p.sent++
	p.api.Set(o)
}

// add makes a Service and its slice.
func (p *trace) add(i int) {
	name, port, protocol := fmt.Sprint("service-", i), int32(8080), corev1.ProtocolTCP
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{}}}
	svc.Spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", i>>8, i&255)
	svc.Spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: protocol}}
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-x", Annotations: map[string]string{},
		Labels: map[string]string{discoveryv1.LabelServiceName: name}}, AddressType: discoveryv1.AddressTypeIPv4}
	portName := ""
	s.Ports = []discoveryv1.EndpointPort{{Name: &portName, Port: &port, Protocol: &protocol}}
	for range traceEndpoints {
		p.endpoint(s)
	}
	// The API server is in this process: it holds as much at the start as later.
	p.check(svc, s)
	p.services, p.slices = append(p.services, svc), append(p.slices, s)
	p.write(svc)
	p.write(s)
}

// endpoint adds a new endpoint to a slice.
func (p *trace) endpoint(s *discoveryv1.EndpointSlice) {
	ready, node := true, fmt.Sprint("node-", p.random.IntN(100))
	n := p.random.IntN(1 << 24)
	s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
		Addresses: []string{fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255)}, NodeName: &node,
		Conditions: discoveryv1.EndpointConditions{Ready: &ready},
	})
}

// idle is what is written in one beat though nothing changes.
func (p *trace) idle() {
	for i := range p.node.Status.Conditions {
		p.node.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(p.now)
	}
	p.write(p.node)
	for range 3 {
		p.write(p.slices[p.random.IntN(traceServices)])
	}
	svc, s := p.services[p.random.IntN(traceServices)], p.slices[p.random.IntN(traceServices)]
	p.check(svc, s)
	p.write(svc)
	p.write(s)
}

// check notes in objects that somebody has looked at them.
func (p *trace) check(svc *corev1.Service, s *discoveryv1.EndpointSlice) {
	svc.Annotations["example.com/checked"] = p.now.String()
	s.Annotations[corev1.EndpointsLastChangeTriggerTime] = p.now.Format(time.RFC3339)
}

// change is one real change, another one each time.
func (p *trace) change(n int) {
	i := p.random.IntN(traceServices)
	svc, s := p.services[i], p.slices[i]
	switch n % 5 {
	case 0: // a pod is replaced
		s.Endpoints = s.Endpoints[1:]
		p.endpoint(s)
	case 1: // one is not ready any more
		ready := false
		s.Endpoints[0].Conditions.Ready = &ready
	case 2: // scaled up
		p.endpoint(s)
	case 3: // scaled down
		s.Endpoints = s.Endpoints[:len(s.Endpoints)-1]
	case 4:
		svc.Spec.Ports[0].Port += 1000
		p.write(svc)
		return
	}
	p.write(s)
}

// disturb breaks the watches; without a history everything is listed again.
func (p *trace) disturb(forget bool) {
	if forget {
		p.api.Compact()
		p.sent += 1 + len(p.services) + len(p.slices)
	}
	p.api.Cut()
}

// forget has the API server keep nothing but the objects.
func (p *trace) forget() {
	p.api.Compact()
	p.api.Forget()
}

// newest notes the newest version that has arrived of each kind.
type newest struct {
	mu       sync.Mutex
	versions map[string]int
	events   int
}

// subscribe adds the notes to a source, as a second user of its watches. f is
// refreshed after every batch.
func (s *newest) subscribe(t *testing.T, src source.Source, f *Frontend) {
	t.Helper()
	err := src.Subscribe(source.Subscription{
		User: "newest",
		Kinds: []source.AnyKind{
			noted(s, t, corev1.SchemeGroupVersion.WithResource("services"), &corev1.Service{}, "!service.kubernetes.io/service-proxy-name", "spec.clusterIP!=None"),
			noted(s, t, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), &discoveryv1.EndpointSlice{}, "!"+corev1.IsHeadlessService, ""),
			noted(s, t, corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{}, "", "metadata.name=node-1"),
		},
		Deliver: func(events []source.Event) {
			f.content.Refresh()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events += len(events)
			for _, e := range events {
				e.Apply()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// noted is a kind of which only the newest version is kept. A list comes in any order.
func noted[O source.Object](s *newest, t *testing.T, resource schema.GroupVersionResource, object O, labels, selected string) source.AnyKind {
	kind := fmt.Sprintf("%T", object)
	return source.Kind[O, string]{
		Resource: resource, Object: object, LabelSelector: labels, FieldSelector: selected,
		Fields: func(O) fields.Set { return fields.Set{"spec.clusterIP": ""} },
		Decode: func(o O) string { return o.GetResourceVersion() },
		Set: func(_ types.NamespacedName, v string) {
			version, err := strconv.Atoi(v)
			if err != nil {
				t.Error(err)
			}
			s.versions[kind] = max(s.versions[kind], version)
		},
		Delete: func(types.NamespacedName) {},
	}
}

// finish writes one object of each kind and waits until it has arrived: so has
// everything before it.
func (p *trace) finish(t *testing.T, seen *newest) {
	t.Helper()
	for _, o := range []apitest.Object{p.services[0], p.slices[0], p.node} {
		p.write(o)
		kind, version := fmt.Sprintf("%T", o), p.api.Version()
		await(t, fmt.Sprintf("%s in version %d", kind, version), func() bool {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			return seen.versions[kind] >= version
		})
	}
}

// play plays a part of the trace, with so many real changes, each of which it
// waits for.
func (p *trace) play(t *testing.T, length time.Duration, changes int, changed func(n int)) {
	t.Helper()
	every := length / time.Duration(changes)
	done := 0
	for at := traceBeat; at <= length; at += traceBeat {
		p.now = p.now.Add(traceBeat)
		p.idle()
		if at%traceRelist == 0 {
			p.disturb(at/traceRelist%2 == 0)
		}
		if at >= every*time.Duration(done+1) {
			p.change(done)
			done++
			changed(done)
		}
	}
}

// heapInUse returns what is left after a collection.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far from the end
}

// TestTrace replays a trace over HTTP to the source and the model: the model's
// revision advances with each real change and with nothing else, and nothing
// that was sent stays in memory.
func TestTrace(t *testing.T) {
	p := newTrace(t)
	src, err := source.NewKube(source.KubeConfig{Server: p.api.URL(), QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(Config{Source: src, NodeName: "node-1", Socket: "/nonexistent", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := &newest{versions: make(map[string]int)}
	seen.subscribe(t, src, f)
	done := make(chan error, 1)
	go func() { done <- src.Run(ctx) }()
	<-f.synced
	revision := func() uint64 {
		return statsOf(f).Revision
	}
	p.finish(t, seen)
	first := revision()
	want := first
	changed := func(int) {
		want++
		await(t, "the change", func() bool { return revision() >= want })
	}
	// One quiet stretch first: buffers and maps grow to what they need.
	p.play(t, 5*time.Minute, 1, changed)
	p.finish(t, seen)
	p.forget()
	before, sent, events := heapInUse(), p.sent, seen.events

	began := time.Now()
	start := want
	p.play(t, traceLength, traceChanges, changed)
	p.finish(t, seen)
	took := time.Since(began)
	p.forget()
	after := heapInUse()
	if got := revision() - start; got != traceChanges {
		t.Errorf("%d revisions for %d real changes", got, traceChanges)
	}
	if got := len(f.Model().Services); got != traceServices {
		t.Errorf("%d services", got)
	}
	const margin = 64 << 10
	if after > before+margin {
		t.Errorf("the heap grew from %d to %d KiB", before>>10, after>>10)
	}
	sent, events = p.sent-sent, seen.events-events
	t.Logf("%v of %d services x %d endpoints in %v: %d objects sent, %d events to the model, %d revisions: %d : 1; heap %d KiB before, %d KiB after",
		traceLength, traceServices, traceEndpoints, took.Round(time.Millisecond), sent, events, traceChanges, sent/traceChanges, before>>10, after>>10)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
