package services

import (
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// The size of TestWedge. CONTRIBUTING has the flags of a long run.
var (
	wedgeObjects = flag.Int("wedge.objects", 100, "random objects of TestWedge")
	wedgeGood    = flag.Int("wedge.good", 20, "good Services among them")
	wedgeSeed    = flag.Uint64("wedge.seed", 0, "seed of TestWedge; 0 means another one each time")
	wedgeLate    = flag.Duration("wedge.late", 0, "fail if a good Service takes longer; 0 means never")
)

// wedge is a node with good Services, among which there are others at and over every limit.
type wedge struct {
	t     *testing.T
	stack *stack
	// kernel reads the node's rules.
	kernel *kernel.Reader
	*rand.Rand
	// objects are those that exist.
	objects map[string]source.Object
	src     *script
	f       *Frontend
	stop    func()
	started bool
	// down is true while there is no process: the next good one changes then.
	down bool
	// commits is the largest number of commits from an event of a good one to that with it.
	commits uint64
}

// set makes objects what they are now. It does not keep them: a subscriber may modify what it gets.
func (w *wedge) set(objects ...source.Object) {
	var batch []any
	for _, o := range objects {
		w.objects[fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())] = o
		batch = append(batch, o.DeepCopyObject())
	}
	if w.src != nil {
		w.src.deliver(batch...)
	}
}

func (w *wedge) remove(o source.Object) {
	delete(w.objects, fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()))
	w.src.deliver(gone{o})
}

// start starts the frontend, which learns of all objects that exist.
func (w *wedge) start() {
	var first []any
	for _, o := range w.objects {
		first = append(first, o.DeepCopyObject())
	}
	w.src = newScript(first...)
	w.f, w.stop = w.stack.frontend(w.t, w.src)
	w.started = true
}

// address returns the n-th address of a network.
func address(network string, n int) string {
	a := netip.MustParseAddr(network).As4()
	a[2], a[3] = byte(n>>8), byte(n)
	return netip.AddrFrom4(a).String()
}

// service makes a Service with ports and endpoints.
func (w *wedge) service(name, ip string, ports, endpoints int, affinity bool) (*corev1.Service, []source.Object) {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "wild", Name: name, CreationTimestamp: metav1.Unix(2000, 0)}}
	s.Spec.ClusterIP, s.Spec.ClusterIPs = ip, []string{ip}
	if affinity {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(int32(1 + w.IntN(86400)))}}
	}
	slice := &discoveryv1.EndpointSlice{AddressType: ipv4}
	slice.Namespace, slice.Name, slice.Labels = "wild", name+"-1", map[string]string{discoveryv1.LabelServiceName: name}
	for i := range ports {
		p := corev1.ServicePort{Name: fmt.Sprint("p", i), Protocol: corev1.ProtocolTCP, Port: int32(i + 1)}
		s.Spec.Ports = append(s.Spec.Ports, p)
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: ptr.To(int32(8000 + i))})
	}
	for range endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address("10.245.0.0", w.IntN(1<<16))}})
	}
	return s, []source.Object{s, slice}
}

// wild makes a random Service: at and over limits, valid and not.
func (w *wedge) wild(i int) []source.Object {
	pick := func(n ...int) int { return n[w.IntN(len(n))] }
	ports, endpoints := pick(0, 1, 1, 1, 2, 10, 100), pick(0, 0, 1, 3, 20, 100)
	if w.IntN(50) == 0 {
		ports, endpoints = pick(999, 1000, 1001, 9999, 10_000, 10_001), 0
	}
	s, all := w.service(fmt.Sprint("w", i), address("10.97.0.0", w.IntN(1<<13)), ports, min(endpoints, 2000/(1+ports)), w.IntN(3) == 0)
	change := []func(){
		func() {}, func() {}, func() {},
		func() { s.Spec.ClusterIPs, s.Spec.ClusterIP = []string{"none"}, "none" },
		func() { s.Spec.ClusterIPs, s.Spec.ClusterIP = []string{"10.96.0.1"}, "10.96.0.1" },
		func() { s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, "not an address") },
		func() { s.Spec.ExternalIPs = []string{"203.0.113.7", "::", "x"} },
		func() { s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = "Local", 0 },
		func() {
			s.Spec.LoadBalancerSourceRanges = []string{"0.0.0.0/33", "10.0.0.1/8"}
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.8"}, {IP: "zz"}}
		},
		func() {
			for i := range s.Spec.Ports {
				s.Spec.Ports[i].NodePort = int32(w.IntN(70_000))
			}
		},
		func() {
			for i := range s.Spec.Ports {
				s.Spec.Ports[i].Protocol, s.Spec.Ports[i].Port = []corev1.Protocol{"SCTP", "UDP", "ICMP", ""}[w.IntN(4)], int32(w.IntN(70_000)-10)
			}
		},
		func() { s.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "other"} },
	}
	change[w.IntN(len(change))]()
	return all
}

// good changes the endpoint of a good Service, and waits until the change is in force.
func (w *wedge) good(i int) {
	key := model.Key{Namespace: "wild", Name: fmt.Sprint("good", i)}
	s, all := w.service(key.Name, address("10.96.0.0", i+1), 1, 0, false)
	s.CreationTimestamp = metav1.Unix(1000, 0)
	endpoint := address("10.244.0.0", w.IntN(1<<16))
	all[1].(*discoveryv1.EndpointSlice).Endpoints = []discoveryv1.Endpoint{{Addresses: []string{endpoint}}}
	before, revision, began := w.f.publisher.Outcome(key), w.f.publisher.Status().Revision, time.Now()
	if w.down {
		w.src = nil
	}
	w.set(all...)
	if w.down {
		w.down = false
		w.start()
	}
	deadline := time.After(time.Minute)
	for {
		if o := w.f.publisher.Outcome(key); o.State == publish.InForce && o.Revision > before.Revision {
			if took := time.Since(began); w.started {
				w.started = false
			} else if w.commits = max(w.commits, o.Revision-revision); *wedgeLate > 0 && took > *wedgeLate {
				w.t.Errorf("the good Service %s took %v", key, took)
			}
			break
		}
		select {
		case <-deadline:
			w.t.Fatalf("after a minute the good Service %s is %+v, and the publisher %+v", key, w.f.publisher.Outcome(key), w.f.publisher.Status())
		case <-time.After(time.Millisecond):
		}
	}
	ip, to := netip.MustParseAddr(s.Spec.ClusterIP).As4(), netip.MustParseAddr(endpoint).As4()
	slot := string(ip[:]) + "\x06\x00\x00\x00" + "\x00\x01\x00\x00" + "\x00\x00\x00\x00"
	want := string(to[:]) + string([]byte{8000 >> 8, 8000 & 0xff, 0, 0})
	e, ok, err := w.kernel.Element(table, w.declared("endpoints", "ipv4_addr . inet_proto . inet_service . mark : ipv4_addr . inet_service"), slot)
	must(w.t, err)
	if !ok || e.Data != want {
		w.t.Errorf("the good Service %s is in force, and the kernel does not have its endpoint %s", key, endpoint)
	}
}

// table is the table that TestWedge reads.
var table = nft.TableID{Family: nft.FamilyIP, Name: "weft"}

// declared returns the declaration of a map.
func (w *wedge) declared(name, types string) *set.Set {
	decl, err := set.CompileMap(nft.FamilyIP, &nft.Map{Name: name, Type: types})
	must(w.t, err)
	return decl
}

// check compares what is said with what the kernel has, Service by Service.
func (w *wedge) check() {
	// Large Services wait for small ones, and there may be very many.
	for deadline := time.After(5 * time.Minute); !w.f.Status().Pending.IsZero() || len(w.src.batches) > 0; {
		select {
		case <-deadline:
			w.t.Fatalf("after five minutes a change waits: %+v", w.f.publisher.Status())
		case <-time.After(10 * time.Millisecond):
		}
	}
	said, has := make(map[string]bool), make(map[string]bool)
	for _, s := range w.f.Model().Services {
		o := w.f.publisher.Outcome(s.Name)
		if len(s.Ports) > 0 && slices.ContainsFunc(s.Ports, func(p model.Port) bool { return p.ClusterIPs[model.IPv4].IsValid() || len(p.External[model.IPv4]) > 0 }) && o.Revision > 0 {
			said[s.Name.String()] = true
		}
		if (o.State == publish.InForce) != (o.Reason == nil) || o.State == publish.Wanted {
			w.t.Errorf("Service %s: %+v", s.Name, o)
		}
	}
	for _, name := range []string{"services", "no-endpoint-services"} {
		elements, err := w.kernel.Elements(table, w.declared(name, "ipv4_addr . inet_proto . inet_service : verdict"))
		must(w.t, err)
		for _, e := range elements {
			service, _, _ := strings.Cut(e.Comment, ":")
			has[service] = true
		}
	}
	if diff := cmp.Diff(said, has); diff != "" {
		w.t.Errorf("what is said to be in force is not what the kernel has (-said +kernel):\n%s", diff)
	}
}

// TestWedge has random Services at and over every limit among good ones: the good ones are in
// force soon after their event, always, and what is said is what the kernel holds.
func TestWedge(t *testing.T) {
	w := &wedge{t: t, stack: newStack(t, nfttest.New(t)), objects: make(map[string]source.Object)}
	seed := *wedgeSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-wedge.seed %d", seed)
	w.Rand = rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test repeats it
	w.stack.log = slog.New(slog.DiscardHandler)
	w.stack.aggregator(t)
	var err error
	w.kernel, err = kernel.OpenReader(kernel.Config{NetNS: w.stack.ns.FD()})
	must(t, err)
	t.Cleanup(func() { _ = w.kernel.Close() })
	w.start()
	for i := range *wedgeGood {
		w.good(i)
	}
	// The objects that stopped everything once.
	_, many := w.service("ports", "10.97.255.1", 10_001, 0, true)
	w.set(many...)
	w.good(0)
	key := model.Key{Namespace: "wild", Name: "ports"}
	await(t, "the Service of 10,001 ports to be left out", func() bool {
		o := w.f.publisher.Outcome(key)
		return o.State == publish.LeftOut && strings.Contains(o.Reason.Error(), "10001 ports")
	})
	for i := range *wedgeObjects / 99 {
		_, all := w.service(fmt.Sprint("hundred", i), address("10.97.254.0", i), 100, 0, true)
		w.set(all...)
	}
	w.good(1)
	w.check()
	const each = 10
	for step := range *wedgeObjects / each {
		for range each {
			i := w.IntN(*wedgeObjects)
			if w.IntN(4) == 0 {
				w.remove(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "wild", Name: fmt.Sprint("w", i)}})
				continue
			}
			w.set(w.wild(i)...)
		}
		w.good(w.IntN(*wedgeGood))
		if step%10 == 9 {
			w.check()
			w.stop()
			w.down = true
			w.good(w.IntN(*wedgeGood))
			w.check()
		}
	}
	// The update in flight, its own, and what a bisection commits in between.
	if w.commits > 20 {
		t.Errorf("a good one waited for %d commits", w.commits)
	}
}
