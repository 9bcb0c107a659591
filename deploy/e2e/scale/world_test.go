package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// node has the proxy.
const node = "node-1"

// newNetwork makes nodes, and answers for every possible endpoint: the host behind the nodes' default
// route takes all endpoint addresses.
func newNetwork(ctx context.Context, nodes int) (*lab.Lab, error) {
	l, err := lab.New(lab.Config{Nodes: nodes})
	if err != nil {
		return nil, err
	}
	// The ClusterIPs too: an untranslated packet is refused at once.
	for _, p := range []netip.Prefix{endpointCIDR, serviceCIDR} {
		if _, err := l.Control.Run(ctx, "ip", "route", "add", "local", p.String(), "dev", "lo"); err != nil {
			return nil, errors.Join(err, closed(l))
		}
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", targetPort))
	if err != nil {
		return nil, errors.Join(err, closed(l))
	}
	go answer(listener)
	return l, nil
}

func closed(l *lab.Lab) error {
	l.Close()
	return nil
}

// answer sends every client its destination address. It ends with the process.
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
	kind       string
	client     kubernetes.Interface
	kubeconfig string
	stop       func() error
}

// The API's data are in a directory with the name.
func startAPI(ctx context.Context, h *lab.Host, kind, name string) (*api, error) {
	dir := filepath.Join(runDir, kind+"-"+name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755), os.MkdirAll(logDir, 0o755)); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	switch kind {
	case replay:
		return startReplay(ctx, h, dir)
	case realAPI:
		return startCluster(ctx, h, dir)
	default:
		return nil, fmt.Errorf("-scale.api=%s: want %s or %s", kind, replay, realAPI)
	}
}

func startReplay(ctx context.Context, h *lab.Host, dir string) (*api, error) {
	address := netip.AddrPortFrom(h.Addresses.V4, 6443).String()
	p, err := h.Start(replay, filepath.Join(logDir, "replay.log"), nil, tests.Path(replay), "-listen", address)
	if err != nil {
		return nil, err
	}
	a := &api{kind: replay, kubeconfig: filepath.Join(dir, "kubeconfig"), stop: p.Kill}
	config := &rest.Config{Host: "http://" + address, QPS: -1, Transport: &http.Transport{MaxIdleConnsPerHost: writers}}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	if a.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, errors.Join(fmt.Errorf("make client: %w", err), p.Kill())
	}
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{replay: {Server: config.Host}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{replay: {}},
		Contexts:       map[string]*clientcmdapi.Context{replay: {Cluster: replay, AuthInfo: replay}},
		CurrentContext: replay,
	}, a.kubeconfig)
	if err == nil {
		err = within(ctx, 10*time.Second, func() error {
			_, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			return err
		})
	}
	if err != nil {
		return nil, errors.Join(err, p.Err(), p.Kill())
	}
	return a, nil
}

func startCluster(ctx context.Context, h *lab.Host, dir string) (*api, error) {
	c, err := cluster.Start(ctx, cluster.Config{Binary: tests.Path("controlplane"), Dir: dir, LogDir: logDir, Host: h})
	if err != nil {
		return nil, err
	}
	a := &api{kind: realAPI, client: c.Client(), kubeconfig: filepath.Join(dir, "kubeconfig"), stop: c.Stop}
	if err := a.admit(ctx, c); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return a, nil
}

// admit makes the namespaces and the proxies' account. Package e2e tests the needed rights.
func (a *api) admit(ctx context.Context, c *cluster.Cluster) error {
	for i := range namespaces {
		o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i)}}
		if _, err := a.client.CoreV1().Namespaces().Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create namespace %s: %w", o.Name, err)
		}
	}
	meta := metav1.ObjectMeta{Name: "proxy", Namespace: namespaceName(0)}
	if _, err := a.client.CoreV1().ServiceAccounts(meta.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create account: %w", err)
	}
	_, err := a.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: meta.Name, Namespace: meta.Namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind account: %w", err)
	}
	token, err := c.Token(ctx, meta.Namespace, meta.Name)
	if err != nil {
		return err
	}
	return c.WriteKubeconfig(a.kubeconfig, token)
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

// write replaces a slice, and returns its new version.
func (a *api) write(ctx context.Context, p *population, i int) (string, error) {
	o := p.slices[i]
	written, err := a.client.DiscoveryV1().EndpointSlices(o.Namespace).Update(ctx, o, metav1.UpdateOptions{})
	if err != nil {
		return "", fmt.Errorf("write slice %s/%s: %w", o.Namespace, o.Name, err)
	}
	return written.ResourceVersion, nil
}
