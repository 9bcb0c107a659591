package balancer

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// health is what the health check node ports answered.
type health struct {
	client http.Client
	checks map[check]*result
}

// check is one port of one node, for one Service.
type check struct {
	service types.UID
	port    int32
	node    string
}

// result is the state of a check. It changes after several equal answers that contradict it.
type result struct {
	healthy      bool
	contradicted int
}

// threshold is the number of answers in sequence that change a state.
const threshold = 2

func newHealth() *health {
	return &health{
		client: http.Client{Timeout: period, Transport: &http.Transport{DisableKeepAlives: true}},
		checks: map[check]*result{},
	}
}

// check asks all nodes for all Services that have a health check node port.
func (h *health) check(ctx context.Context, services []*corev1.Service, nodes []*corev1.Node) {
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[check]bool{}
	for _, s := range services {
		if s.Spec.HealthCheckNodePort == 0 || !wanted(s) {
			continue
		}
		for _, n := range nodes {
			key := check{s.UID, s.Spec.HealthCheckNodePort, n.Name}
			all.Go(func() {
				ok := h.ask(ctx, n, key.port)
				mu.Lock()
				defer mu.Unlock()
				answers[key] = ok
			})
		}
	}
	all.Wait()
	for key, ok := range answers {
		h.record(key, ok)
	}
}

// record counts an answer.
func (h *health) record(key check, ok bool) {
	r := h.checks[key]
	if r == nil {
		r = &result{}
		h.checks[key] = r
	}
	if r.healthy == ok {
		r.contradicted = 0
		return
	}
	if r.contradicted++; r.contradicted >= threshold {
		r.healthy, r.contradicted = ok, 0
	}
}

// ask is one request, to the first address of the node.
func (h *health) ask(ctx context.Context, n *corev1.Node, port int32) bool {
	for _, a := range n.Status.Addresses {
		if a.Type != corev1.NodeInternalIP {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, period-100*time.Millisecond)
		defer cancel()
		url := "http://" + net.JoinHostPort(a.Address, strconv.Itoa(int(port))) + "/healthz"
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		res, err := h.client.Do(req)
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}
	return false
}

// ok reports whether a node is healthy for a Service.
func (h *health) ok(s *corev1.Service, n *corev1.Node) bool {
	r := h.checks[check{s.UID, s.Spec.HealthCheckNodePort, n.Name}]
	return r != nil && r.healthy
}

// forget removes the state of a Service.
func (h *health) forget(service types.UID) {
	for key := range h.checks {
		if key.service == service {
			delete(h.checks, key)
		}
	}
}
