package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
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
	var ended error
	err := lab.Within(ctx, readyTime, func() error {
		errs := []error{w.Ended()}
		for _, d := range w.proxies {
			errs = append(errs, d.unexpected())
		}
		if ended = errors.Join(errs...); ended != nil {
			return nil
		}
		return f(ctx)
	})
	if err = errors.Join(ended, err); err != nil {
		return fmt.Errorf("wait for %s: %w; logs are in %s", what, err, w.logs)
	}
	return nil
}

func (w *world) nodesReady(ctx context.Context) error {
	nodes, err := w.Cluster.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
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
	for _, n := range w.Lab.Nodes {
		answer, err := w.Lab.Control.Get(ctx, fmt.Sprintf("http://%s:%d/healthz", n.Addresses.V4, healthPort), time.Minute)
		if err == nil && answer.Status != http.StatusOK {
			err = fmt.Errorf("proxy of %s is not healthy: %d", n.Name(), answer.Status)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) dnsReady(ctx context.Context) error {
	d, err := w.Cluster.Client().AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
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
