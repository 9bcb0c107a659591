package conformance

import (
	"context"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readyTime bounds the wait for each part of a world.
const readyTime = 3 * time.Minute

// ready waits until all nodes are Ready, all proxies are healthy and CoreDNS runs.
func (w *world) ready(ctx context.Context) error {
	for _, part := range []struct {
		name  string
		ready func(context.Context) error
	}{{"nodes", w.nodesReady}, {"proxies", w.proxiesHealthy}, {"CoreDNS", w.dnsReady}} {
		if err := w.until(ctx, part.name, part.ready); err != nil {
			return err
		}
	}
	return nil
}

// until retries f. It fails at once if a program has ended.
func (w *world) until(ctx context.Context, what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	var last error
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		if last = f(ctx); last == nil {
			tick.Stop()
			return nil
		}
		for _, all := range [][]*daemon{w.kubelets, w.proxies} {
			for _, d := range all {
				if err := d.unexpected(); err != nil {
					return fmt.Errorf("wait for %s: %w", what, err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last state: %w; logs are in %s", what, ctx.Err(), last, w.logs)
		case <-tick.C:
		}
	}
}

func (w *world) nodesReady(ctx context.Context) error {
	nodes, err := w.cluster.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range nodes.Items {
		if len(n.Spec.Taints) > 0 {
			return fmt.Errorf("node %s has taints %v", n.Name, n.Spec.Taints)
		}
		state := "unknown"
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				state = string(c.Status) + " " + c.Message
			}
		}
		if state[:4] != "True" {
			return fmt.Errorf("node %s: ready: %s", n.Name, state)
		}
	}
	return nil
}

// proxiesHealthy asks every proxy as a cloud's load balancer does.
func (w *world) proxiesHealthy(ctx context.Context) error {
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, n := range w.lab.Nodes {
		url := fmt.Sprintf("http://%s:%d/healthz", n.Addresses.V4, healthPort)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("get %s: %s", url, res.Status)
		}
	}
	return nil
}

func (w *world) dnsReady(ctx context.Context) error {
	d, err := w.cluster.Client().AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return complete(d)
}

func complete(d *appsv1.Deployment) error {
	if want := *d.Spec.Replicas; d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < want {
		return fmt.Errorf("Deployment %s has %d of %d replicas available", d.Name, d.Status.AvailableReplicas, want)
	}
	return nil
}
