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

type health struct {
	client http.Client
	checks map[check]*result
}

// check is a port of a node, for one Service.
type check struct {
	service types.UID
	port    int32
	node    string
}

// result changes after threshold equal answers that contradict it.
type result struct {
	healthy      bool
	contradicted int
}

const threshold = 2

func newHealth() *health {
	return &health{
		client: http.Client{Timeout: period, Transport: &http.Transport{DisableKeepAlives: true}},
		checks: map[check]*result{},
	}
}

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

// ask uses the first address of the node.
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

func (h *health) ok(s *corev1.Service, n *corev1.Node) bool {
	r := h.checks[check{s.UID, s.Spec.HealthCheckNodePort, n.Name}]
	return r != nil && r.healthy
}

func (h *health) forget(service types.UID) {
	for key := range h.checks {
		if key.service == service {
			delete(h.checks, key)
		}
	}
}
