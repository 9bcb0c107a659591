package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// node has the proxy.
const node = "node-1"

// network is a lab whose endpoints answer until answers is closed.
type network struct {
	*lab.Lab
	answers net.Listener
}

// newNetwork makes nodes, and answers for every possible endpoint: the host behind the nodes' default
// route takes all endpoint addresses.
func newNetwork(ctx context.Context, nodes int) (*network, error) {
	l, err := lab.New(lab.Config{Nodes: nodes})
	if err != nil {
		return nil, err
	}
	// The ClusterIPs too: an untranslated packet is refused at once.
	for _, p := range []netip.Prefix{endpointCIDR, serviceCIDR} {
		if _, err := l.Control.Run(ctx, "ip", "route", "replace", "local", p.String(), "dev", "lo"); err != nil {
			l.Close()
			return nil, err
		}
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", targetPort))
	if err != nil {
		l.Close()
		return nil, err
	}
	go answer(listener)
	return &network{l, listener}, nil
}

// answer sends every client its destination address. It ends with the listener.
func answer(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, conn.LocalAddr().String())
		conn.Close()
	}
}

type api struct {
	client     kubernetes.Interface
	kubeconfig string
	stop       func() error
}

// startAPI starts an API server of negligible cost.
func startAPI(ctx context.Context, h *lab.Host, name string) (*api, error) {
	dir := filepath.Join(runDir, "api-"+name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755), os.MkdirAll(logDir, 0o755)); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	r, err := cluster.StartReplay(ctx, h, tests.Path(replay), dir, logDir)
	if err != nil {
		return nil, err
	}
	return &api{client: r.Client, kubeconfig: r.Kubeconfig, stop: r.Process.Kill}, nil
}

const writers = 8

func (a *api) fill(ctx context.Context, p *population, own netip.Addr) error {
	var work []func() error
	for i := range nodes {
		work = append(work, func() error {
			return a.createNode(ctx, newNode(nodeName(i), netip.AddrFrom4([4]byte{192, 168, 201, byte(i + 1)})))
		})
	}
	work = append(work, func() error { return a.createNode(ctx, newNode(node, own)) })
	for i := range p.services {
		work = append(work, func() error {
			o := newService(i)
			_, err := a.client.CoreV1().Services(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
			return err
		})
	}
	for _, slice := range p.slices {
		work = append(work, func() error {
			_, err := a.client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
			return err
		})
	}
	if err := parallel(writers, work); err != nil {
		return fmt.Errorf("write %s to the API: %w", p, err)
	}
	return nil
}

// createNode writes a node, its status and its lease, as its kubelet does.
func (a *api) createNode(ctx context.Context, o *corev1.Node) error {
	status := o.Status
	made, err := a.client.CoreV1().Nodes().Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Status = status
	if _, err := a.client.CoreV1().Nodes().UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: o.Name}}
	_, err = a.client.CoordinationV1().Leases(lease.Namespace).Create(ctx, lease, metav1.CreateOptions{})
	return err
}

// write replaces a slice.
func (a *api) write(ctx context.Context, p *population, i int) error {
	o := p.slices[i]
	if _, err := a.client.DiscoveryV1().EndpointSlices(o.Namespace).Update(ctx, o, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write slice %s/%s: %w", o.Namespace, o.Name, err)
	}
	return nil
}
