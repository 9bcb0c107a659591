package kubelet

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// pods is a kubelet with a server on a socket.
type pods struct {
	podsv1alpha1.UnimplementedPodsServer
	socket string
	server *grpc.Server

	mu sync.Mutex
	// what a stream begins with; nil for a kubelet that starts
	list     [][]byte
	starting bool
	// without the end of the list
	silent  bool
	streams map[chan *podsv1alpha1.WatchPodsEvent]struct{}
	// streams that were begun
	count int
}

func newPods(t *testing.T, list ...[]byte) *pods {
	t.Helper()
	k := &pods{socket: filepath.Join(t.TempDir(), "pods-api.sock"), list: list, streams: make(map[chan *podsv1alpha1.WatchPodsEvent]struct{})}
	k.start(t)
	return k
}

// start listens, and stops when the test ends.
func (k *pods) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", k.socket)
	publishtest.Must(t, err)
	server := grpc.NewServer()
	podsv1alpha1.RegisterPodsServer(server, k)
	k.server = server
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
}

// change changes the kubelet under its lock.
func (k *pods) change(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// send sends an event to all streams.
func (k *pods) send(kind podsv1alpha1.EventType, pod []byte) {
	k.change(func() {
		for s := range k.streams {
			s <- &podsv1alpha1.WatchPodsEvent{Type: kind, Pod: pod}
		}
	})
}

func (k *pods) WatchPods(_ *podsv1alpha1.WatchPodsRequest, stream podsv1alpha1.Pods_WatchPodsServer) error {
	events := make(chan *podsv1alpha1.WatchPodsEvent, 10_000)
	var list [][]byte
	var starting, silent bool
	k.change(func() {
		list, starting, silent = k.list, k.starting, k.silent
		k.streams[events] = struct{}{}
		k.count++
	})
	defer k.change(func() { delete(k.streams, events) })
	if starting {
		return status.Error(codes.FailedPrecondition, "Kubelet is initializing")
	}
	for _, p := range list {
		if err := stream.Send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_ADDED, Pod: p}); err != nil {
			return err
		}
	}
	if !silent {
		if err := stream.Send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
			return err
		}
	}
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case e := <-events:
			if err := stream.Send(e); err != nil {
				return err
			}
		}
	}
}

// object returns pod default/name with the UID uid-name.
func object(name string, options ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{"other": "x"}}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: strings.Repeat("i", 100)}}
	p.Status.Phase = corev1.PodRunning
	conditions("True", "True", "")(p)
	for _, o := range options {
		o(p)
	}
	return p
}

// conditions sets the conditions Ready, with its reason, and ContainersReady.
func conditions(ready, containers corev1.ConditionStatus, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: "True"}, {Type: corev1.PodReady, Status: ready, Reason: reason}, {Type: corev1.ContainersReady, Status: containers, Reason: reason},
		}
	}
}

func notReady(p *corev1.Pod) { conditions("False", "False", notReadyReason)(p) }

func deleted(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func phase(of corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = of }
}

func message(t testing.TB, name string, options ...func(*corev1.Pod)) []byte {
	t.Helper()
	b, err := object(name, options...).Marshal()
	publishtest.Must(t, err)
	return b
}

// follower has a model with Services a, b and c, each with its pod's endpoint on this node.
type follower struct {
	*Follower
	mu         sync.Mutex
	model      *model.Model
	deliveries int
}

// follow runs a follower with short times until the test ends.
func follow(t *testing.T, socket string, options ...func(*Follower)) *follower {
	t.Helper()
	f := &follower{model: model.New(model.Config{NodeName: "n1"})}
	for i, name := range []string{"a", "b", "c"} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		service.Spec.ClusterIP = fmt.Sprint("10.96.0.", i+1)
		service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		f.model.SetService(service)
		f.model.SetSlice(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(80))}},
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{fmt.Sprint("10.1.0.", i+1)}, NodeName: new("n1"),
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
			}},
		})
	}
	f.Follower = New(Config{Socket: socket, Deliver: f.deliver, HeldOut: func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.model.Pods().HeldOut()
	}})
	f.minRetry, f.maxRetry = 5*time.Millisecond, 20*time.Millisecond
	for _, o := range options {
		o(f.Follower)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

func (f *follower) deliver(change func(*model.Model)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deliveries++
	change(f.model)
}

// used returns the Services with an endpoint.
func (f *follower) used() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.model.Refresh()
	out := make(map[string]bool)
	for _, s := range f.model.Snapshot().Services {
		if s.Ports[0].Backends[model.IPv4].Cluster.Len() > 0 {
			out[s.Name.Name] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(out)), "")
}

func (f *follower) await(t *testing.T, what, want string) {
	t.Helper()
	publishtest.Await(t, what+": the Services with endpoints are "+want, func() bool { return f.used() == want })
}
