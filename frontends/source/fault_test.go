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

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
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
				r := follow(t, kubeOf(t, api, KubeConfig{AcceptContentTypes: accept}))
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
			r := follow(t, kubeOf(t, api, KubeConfig{}))
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
			aggregatortest.Eventually(t, "requests", func() bool { return len(api.Requests("services")) > 0 && len(api.Requests("servicecidrs")) > 0 })
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(3 * time.Minute):
				t.Fatal("the source does not end")
			}
			aggregatortest.Eventually(t, "the end of the connections", func() bool { return open.Load() == 0 })
			aggregatortest.Eventually(t, "the end of the goroutines", func() bool { return goroutines() <= before })
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
