package apitest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxHistory is the number of changes a watch can catch up with.
const maxHistory = 1000

// Object is an object of the server.
type Object interface {
	runtime.Object
	metav1.Object
}

// Server is an API server. It keeps its address across Stop and Start.
type Server struct {
	address string
	listen  Listen

	mu      sync.Mutex
	http    *httptest.Server
	version int
	release string
	types   []types
	kinds   map[schema.GroupVersionKind]*kind
	// closed and replaced to wake watches
	changed  chan struct{}
	fault    func(Request) Fault
	requests []Request
}

type types struct {
	scheme *runtime.Scheme
	codecs serializer.CodecFactory
}

type kind struct {
	types   types
	gvk     schema.GroupVersionKind
	objects map[string]Object
	history []change
	// last version that is not in history
	compacted int
}

type change struct {
	version       int
	before, after Object
}

// Request is a received request.
type Request struct {
	// such as "services", or "version" for the server's version
	Resource string
	// "get", "list", "stream" (a list as a watch) or "watch"
	Verb   string
	Query  url.Values
	Header http.Header
	// by resource and verb, from 1
	N int
}

// Listen is net.Listen or a replacement.
type Listen func(network, address string) (net.Listener, error)

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	return NewOn(t, net.Listen)
}

// NewOn starts a server with another Listen.
func NewOn(t testing.TB, listen Listen) *Server {
	t.Helper()
	s, err := Start(listen, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Start starts a server outside a test.
func Start(listen Listen, address string) (*Server, error) {
	s := &Server{listen: listen, changed: make(chan struct{}), version: 1, release: "1.37", kinds: make(map[schema.GroupVersionKind]*kind)}
	s.types = []types{{scheme.Scheme, scheme.Codecs}}
	return s, s.start(address)
}

// Install adds a scheme's custom resources, only in JSON. The scheme must not change afterwards.
func (s *Server) Install(custom *runtime.Scheme) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.types = append(s.types, types{custom, serializer.NewCodecFactory(custom)})
}

// The lock is held.
func (s *Server) kindOf(o Object) *kind {
	var err error
	for _, t := range s.types {
		var all []schema.GroupVersionKind
		if all, _, err = t.scheme.ObjectKinds(o); err == nil {
			return s.kind(t, all[0])
		}
	}
	panic(fmt.Sprintf("apitest: %v", err))
}

func (k *kind) empty() Object { return k.new("").(Object) } //nolint:forcetypeassert // every kind is an Object

func (k *kind) list(objects []runtime.Object) runtime.Object {
	l := k.new("List")
	if err := meta.SetList(l, objects); err != nil {
		panic(fmt.Sprintf("apitest: %v", err))
	}
	return l
}

func (k *kind) new(suffix string) runtime.Object {
	o, err := k.types.scheme.New(k.gvk.GroupVersion().WithKind(k.gvk.Kind + suffix))
	if err != nil {
		panic(fmt.Sprintf("apitest: %v", err))
	}
	return o
}

// URL returns the URL of the server.
func (s *Server) URL() string { return "http://" + s.address }

// Address returns the server's address and port.
func (s *Server) Address() string { return s.address }

// Start starts the server again after Stop.
func (s *Server) Start() error { return s.start(s.address) }

func (s *Server) start(address string) error {
	l, err := s.listen("tcp", address)
	if err != nil {
		return fmt.Errorf("start API server: %w", err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address, s.http = l.Addr().String(), srv
	srv.Start()
	return nil
}

// Stop closes all connections and the socket. The objects stay.
func (s *Server) Stop() { _ = s.server().Config.Close() }

// Cut closes all connections, even during an answer.
func (s *Server) Cut() { s.server().CloseClientConnections() }

func (s *Server) server() *httptest.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.http
}

// Set creates or replaces objects, each with a new version.
func (s *Server) Set(objects ...Object) {
	s.change(objects, func(o Object) Object { return o.DeepCopyObject().(Object) }) //nolint:forcetypeassert // a copy of one
}

// Delete deletes objects and ignores missing ones.
func (s *Server) Delete(objects ...Object) {
	s.change(objects, func(Object) Object { return nil })
}

// change deletes an object if next returns nil.
func (s *Server) change(objects []Object, next func(Object) Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		k, key := s.kindOf(o), name(o)
		c := change{version: s.version + 1, before: k.objects[key], after: next(o)}
		switch {
		case c.after != nil:
			c.after.SetResourceVersion(strconv.Itoa(c.version))
			k.objects[key] = c.after
		case c.before != nil:
			delete(k.objects, key)
		default:
			continue
		}
		s.version = c.version
		k.note(c)
	}
	s.wake()
}

// Version returns the newest change's version.
func (s *Server) Version() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// SetRelease sets the version of Kubernetes, initially 1.37.
func (s *Server) SetRelease(release string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release = release
}

// Compact deletes the history. A watch from an old version fails with 410.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds {
		k.history, k.compacted = nil, s.version
	}
	s.wake()
}

// Fault sets the faults from now on; nil clears them. f is called sequentially for each request.
func (s *Server) Fault(f func(Request) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Forget clears Requests and restarts the counts.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Requests returns the requests for a resource.
func (s *Server) Requests(resource string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Request
	for _, r := range s.requests {
		if r.Resource == resource {
			out = append(out, r)
		}
	}
	return out
}

// The lock is held.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (k *kind) note(c change) {
	k.history = append(k.history, c)
	if n := len(k.history) - maxHistory; n > 0 {
		k.compacted = k.history[n-1].version
		k.history = append([]change(nil), k.history[n:]...)
	}
}

// The lock is held.
func (s *Server) kind(t types, gvk schema.GroupVersionKind) *kind {
	k := s.kinds[gvk]
	if k == nil {
		k = &kind{types: t, gvk: gvk, objects: make(map[string]Object)}
		s.kinds[gvk] = k
	}
	return k
}

func (s *Server) kindOfResource(r schema.GroupVersionResource) *kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.types {
		for name := range t.scheme.KnownTypes(r.GroupVersion()) {
			gvk := r.GroupVersion().WithKind(name)
			if plural, _ := meta.UnsafeGuessKindToResource(gvk); plural == r {
				return s.kind(t, gvk)
			}
		}
	}
	return nil
}

func name(o Object) string { return o.GetNamespace() + "/" + o.GetName() }
