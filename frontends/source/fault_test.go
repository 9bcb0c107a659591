package source

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// faults are what can go wrong with one request.
func faults() map[string]apitest.Fault {
	return map[string]apitest.Fault{
		"410":                       {Status: http.StatusGone},
		"429":                       {Status: http.StatusTooManyRequests},
		"429 with a time":           {Status: http.StatusTooManyRequests, RetryAfter: 1},
		"500":                       {Status: http.StatusInternalServerError},
		"503 with a time":           {Status: http.StatusServiceUnavailable, RetryAfter: 1},
		"401":                       {Status: http.StatusUnauthorized},
		"403":                       {Status: http.StatusForbidden},
		"404":                       {Status: http.StatusNotFound},
		"cut before anything":       {CutAfter: 1},
		"cut after a few bytes":     {CutAfter: 200},
		"cut after several objects": {CutAfter: 5000},
		"garbage":                   {Garbage: "\x00\x01 this is none of yours"},
		"garbage in JSON":           {Garbage: `{"kind":"Nonsense","apiVersion":"v1","items":[]}`},
		"an empty answer":           {Garbage: " "},
		"410 in the stream":         {Event: apitest.Expired()},
	}
}

// fill gives a server Services and slices, and returns what a recorder should
// have of them.
func fill(api *apitest.Server, n int) []string {
	want := []string{"Node n1=1"}
	api.Set(kubeNode("n1"))
	for i := range n {
		ip, addr := fmt.Sprintf("10.96.1.%d", i), fmt.Sprintf("10.1.1.%d", i)
		api.Set(kubeService(fmt.Sprint("s", i), ip), kubeSlice(fmt.Sprint("s", i, "-1"), addr))
		want = append(want, fmt.Sprintf("Service default/s%d=%s", i, ip), fmt.Sprintf("EndpointSlice default/s%d-1=%s", i, addr))
	}
	return want
}

// TestKubeFaultyStart has every fault, in the format of every answer, at the
// first lists: nothing is synced before all is there, and all arrives.
//
// Behaviour: 131.
func TestKubeFaultyStart(t *testing.T) {
	t.Parallel()
	for name, fault := range faults() {
		for _, accept := range []string{"", jsonContent} {
			t.Run(name+" "+accept, func(t *testing.T) {
				t.Parallel()
				api := apitest.New(t)
				want := fill(api, 20)
				api.Fault(func(q apitest.Request) apitest.Fault {
					if q.Resource != "servicecidrs" && q.N == 1 && q.Verb != "watch" {
						return fault
					}
					return apitest.Fault{}
				})
				r := newRecorder()
				follow(t, kubeOf(t, api, KubeConfig{AcceptContentTypes: accept}), r)
				r.until(t, "the end of the lists", func() bool { return r.synced == 1 })
				r.mu.Lock()
				if n := len(r.objects); n != 41 {
					t.Errorf("synced with %d objects of 41", n)
				}
				r.mu.Unlock()
				r.await(t, want...)
				r.lostNothing(t, 0)
			})
		}
	}
}

// TestKubeFaultyWatch has every fault in the watches and in the lists that
// follow, while objects change: what exists is never withdrawn.
//
// Behaviour: 131.
func TestKubeFaultyWatch(t *testing.T) {
	t.Parallel()
	for name, fault := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := apitest.New(t)
			want := fill(api, 20)
			r := newRecorder()
			follow(t, kubeOf(t, api, KubeConfig{}), r)
			r.await(t, want...)
			api.Fault(faultyTwice(fault))
			api.Cut()
			api.Set(kubeService("s0", "10.96.2.0"), kubeSlice("s0-1", "10.1.2.0"), kubeService("new", "10.96.3.0"))
			api.Delete(kubeService("s1", ""), kubeSlice("s1-1"))
			want = append(want[:1:1], want[5:]...)
			want = append(want, "Service default/s0=10.96.2.0", "EndpointSlice default/s0-1=10.1.2.0", "Service default/new=10.96.3.0")
			r.await(t, want...)
			r.lostNothing(t, 2)
		})
	}
}

// faultyTwice lets the next two requests for each resource fail.
func faultyTwice(f apitest.Fault) func(apitest.Request) apitest.Fault {
	seen := make(map[string]int)
	return func(q apitest.Request) apitest.Fault {
		seen[q.Resource]++
		if seen[q.Resource] <= 2 {
			return f
		}
		return apitest.Fault{}
	}
}

// lostNothing fails if more objects went than should have.
func (r *recorder) lostNothing(t *testing.T, went int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone != went {
		t.Errorf("%d objects were withdrawn, want %d", r.gone, went)
	}
}

// TestKubeCompacted loses its watch and finds that the server has forgotten what
// happened since: it lists anew, reports what went meanwhile, and nothing else.
func TestKubeCompacted(t *testing.T) {
	api := apitest.New(t)
	want := fill(api, 20)
	r := newRecorder()
	follow(t, kubeOf(t, api, KubeConfig{}), r)
	r.await(t, want...)
	api.Stop()
	api.Delete(kubeService("s0", ""), kubeSlice("s0-1"))
	api.Set(kubeService("s1", "10.96.2.1"))
	api.Compact()
	r.mu.Lock()
	batches := r.batches
	r.mu.Unlock()
	if err := api.Start(); err != nil {
		t.Fatal(err)
	}
	want = append(want[:1:1], append(want[4:], "Service default/s1=10.96.2.1")...)
	r.await(t, want...)
	r.lostNothing(t, 2)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.batches - batches; n != 2 {
		t.Errorf("%d batches for the changes of two kinds", n)
	}
}

// TestKubeBookmarks goes on after a bookmark's version without a new list, even
// where what was before it is forgotten.
func TestKubeBookmarks(t *testing.T) {
	api := apitest.New(t)
	want := fill(api, 2)
	r := newRecorder()
	follow(t, kubeOf(t, api, KubeConfig{AcceptContentTypes: jsonContent}), r)
	r.await(t, want...)
	// Other kinds change, and so does the version.
	for i := range 10 {
		api.Set(kubeCIDR("a", fmt.Sprintf("10.%d.0.0/16", i)))
	}
	r.await(t, append(want, "ServiceCIDR a=10.9.0.0/16")...)
	api.Bookmark()
	api.Set(kubeService("s0", "10.96.2.0"))
	want = append(want[:1:1], append(want[2:], "ServiceCIDR a=10.9.0.0/16", "Service default/s0=10.96.2.0")...)
	r.await(t, want...)
	// The bookmark came before the Service on its watch. The others may still
	// be on their way to the client; only Services are judged.
	api.Compact()
	api.Cut()
	api.Set(kubeService("s1", "10.96.2.1"))
	r.until(t, "the change after the cut", func() bool { return r.objects["Service default/s1"] == "10.96.2.1" })
	streams := 0
	for _, q := range api.Requests("services") {
		if q.Verb != "watch" {
			streams++
		}
	}
	if streams != 1 {
		t.Errorf("%d lists of services, want the first alone", streams)
	}
	r.lostNothing(t, 0)
}

// TestKubeRestart has the API server away for a while, longer and longer. Events flow
// with the next attempt (TestBackoffIsBounded tests how far away it is).
func TestKubeRestart(t *testing.T) {
	t.Parallel()
	api := apitest.New(t)
	want := fill(api, 5)
	r := newRecorder()
	follow(t, kubeOf(t, api, KubeConfig{}), r)
	r.await(t, want...)
	for i, away := range []time.Duration{0, 300 * time.Millisecond, 4 * time.Second} {
		api.Stop()
		<-time.After(away)
		ip := fmt.Sprintf("10.96.2.%d", i)
		api.Set(kubeService("s0", ip))
		if err := api.Start(); err != nil {
			t.Skipf("the port is taken by another process: %v", err)
		}
		back := time.Now()
		r.until(t, "the change after "+away.String(), func() bool { return r.objects["Service default/s0"] == ip })
		took := time.Since(back)
		if took > time.Minute {
			t.Errorf("away for %v: the first event came %v after the server was back", away, took)
		}
		t.Logf("away for %v: first event %v after the server was back", away, took.Round(time.Millisecond))
	}
	r.lostNothing(t, 0)
}

// TestKubeLeavesNothing ends in the middle of everything that can be waited
// for: no goroutine and no connection stays.
func TestKubeLeavesNothing(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	for name, fault := range map[string]apitest.Fault{
		"healthy": {}, "slow lists": {Hold: hold}, "asked to wait": {Status: http.StatusTooManyRequests, RetryAfter: 30},
		"retrying": {Status: http.StatusTooManyRequests}, "forbidden": {Status: http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			var open atomic.Int64
			api := apitest.NewOn(t, func(network, address string) (net.Listener, error) {
				l, err := net.Listen(network, address)
				return countingListener{l, &open}, err
			})
			fill(api, 3)
			before := goroutines()
			api.Fault(func(apitest.Request) apitest.Fault { return fault })
			k := kubeOf(t, api, KubeConfig{})
			subscribe(t, k, newRecorder())
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- k.Run(ctx) }()
			eventually(t, "requests", func() bool { return len(api.Requests("services")) > 0 && len(api.Requests("servicecidrs")) > 0 })
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(3 * time.Minute):
				t.Fatal("the source does not end")
			}
			eventually(t, "the end of the connections", func() bool { return open.Load() == 0 })
			eventually(t, "the end of the goroutines", func() bool { return goroutines() <= before })
		})
	}
}

// countingListener counts the connections that its server has not closed.
type countingListener struct {
	net.Listener
	open *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return &countedConn{Conn: c, closed: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// goroutines counts those that run code of the client.
func goroutines() int {
	buf := make([]byte, 4<<20)
	n := 0
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "k8s.io/client-go") || strings.Contains(g, "(*persistConn)") || strings.Contains(g, "source.(*Kube)") {
			n++
		}
	}
	return n
}

// eventually polls a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
