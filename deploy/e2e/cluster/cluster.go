package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// ServiceCIDRs are what ClusterIPs come from, IPv4 (the default family) first.
func ServiceCIDRs() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:10:96::/112")}
}

// Config says where the control plane is.
type Config struct {
	// Binary is the built cmd/controlplane.
	Binary string
	// Dir gets the data of etcd and the credentials, LogDir the logs.
	Dir, LogDir string
	// Host is where it runs and what it listens on. The namespace must be the caller's own.
	Host *lab.Host
}

// Cluster is a running control plane.
type Cluster struct {
	cfg    Config
	creds  *credentials
	admin  *rest.Config
	client *kubernetes.Clientset
	etcd   *lab.Process
	server *lab.Process
	// controller makes EndpointSlices of Services with selectors.
	controller *lab.Process
}

const (
	etcdURL    = "http://127.0.0.1:2379"
	peerURL    = "http://127.0.0.1:2380"
	securePort = 6443
	// ready bounds the wait for /readyz. It takes 4 s on an idle machine.
	ready = 2 * time.Minute
)

// Start runs etcd, the API server and the EndpointSlice controller, and returns
// when the API server is ready.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	c := &Cluster{cfg: cfg}
	serving := append([]netip.Addr{netip.MustParseAddr("127.0.0.1"), ServiceCIDRs()[0].Addr().Next()}, cfg.Host.Addresses.All()...)
	var err error
	if c.creds, err = newCredentials(cfg.Dir, serving); err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	c.admin = &rest.Config{
		Host:            c.URL(),
		BearerToken:     c.creds.admin,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CA()},
		// The tests write objects as fast as they can.
		QPS: -1,
	}
	if c.client, err = kubernetes.NewForConfig(c.admin); err != nil {
		return nil, fmt.Errorf("start cluster: make client: %w", err)
	}
	for _, start := range []func(context.Context) error{c.startEtcd, c.StartAPIServer, c.admitController, c.startController} {
		if err := start(ctx); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	return c, nil
}

// URL is that of the API server, as every node can reach it.
func (c *Cluster) URL() string {
	return "https://" + netip.AddrPortFrom(c.cfg.Host.Addresses.V4, securePort).String()
}

// CA is the certificate, PEM, that the API server's is signed with.
func (c *Cluster) CA() []byte { return c.creds.authority }

// Client is an administrator's.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Admin returns the configuration of a client with all rights.
func (c *Cluster) Admin() *rest.Config { return c.admin }

// run starts one of the programs in the binary.
func (c *Cluster) run(process **lab.Process, name string, flags ...string) (err error) {
	argv := append([]string{c.cfg.Binary, name}, flags...)
	*process, err = c.cfg.Host.Start(name, filepath.Join(c.cfg.LogDir, name+".log"), nil, argv...)
	return err
}

func (c *Cluster) startEtcd(context.Context) error {
	return c.run(&c.etcd, "etcd",
		"--name", "e2e", "--data-dir", filepath.Join(c.cfg.Dir, "etcd"),
		"--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
		"--initial-cluster", "e2e="+peerURL,
		// Its life ends with the test's, and the disk is shared with others.
		"--unsafe-no-fsync", "--log-level", "warn")
}

// StartAPIServer runs the API server, which must not be running, and waits for
// it to be ready. The controller starts anew then, as kube-controller-manager does, which
// ends when it can't renew its lease.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	cidrs := ServiceCIDRs()
	err := c.run(&c.server, "kube-apiserver",
		"--etcd-servers", etcdURL,
		"--bind-address", "0.0.0.0", fmt.Sprintf("--secure-port=%d", securePort),
		"--advertise-address", c.cfg.Host.Addresses.V4.String(),
		"--service-cluster-ip-range", cidrs[0].String()+","+cidrs[1].String(),
		"--tls-cert-file", c.creds.serving, "--tls-private-key-file", c.creds.key,
		"--token-auth-file", c.creds.tokens,
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", c.creds.accounts,
		"--service-account-signing-key-file", c.creds.accounts,
		"--authorization-mode", "RBAC", "--anonymous-auth=false", "--allow-privileged",
		// Names of nodes resolve nowhere.
		"--kubelet-preferred-address-types=InternalIP",
		"--profiling=false", "--v=1")
	if err != nil {
		return err
	}
	if err := c.waitReady(ctx); err != nil || c.controller == nil {
		return err
	}
	if err := c.controller.Kill(); err != nil {
		return err
	}
	return c.startController(ctx)
}

func (c *Cluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		last = c.client.RESTClient().Get().AbsPath("/readyz").Timeout(2 * time.Second).Do(ctx).Error()
		if last == nil {
			return nil
		}
		select {
		case <-c.etcd.Done():
			return c.etcd.Err()
		case <-c.server.Done():
			return c.server.Err()
		case <-ctx.Done():
			return fmt.Errorf("wait for kube-apiserver: %w; /readyz: %w; its last lines:\n%s", ctx.Err(), last, c.server.Tail(20))
		case <-tick.C:
		}
	}
}

// controllerName is that of the EndpointSlice controller and of its account.
const controllerName = "endpointslice-controller"

// admitController gives the EndpointSlice controller the service account that
// kube-controller-manager uses for it, with the rights that the API server
// itself has bound to that account.
func (c *Cluster) admitController(ctx context.Context) error {
	const namespace = "kube-system"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: controllerName, Namespace: namespace}}
	if _, err := c.client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create service account %s/%s: %w", namespace, controllerName, err)
	}
	token, err := c.Token(ctx, namespace, controllerName)
	if err != nil {
		return err
	}
	return c.WriteKubeconfig(c.controllerConfig(), token)
}

func (c *Cluster) controllerConfig() string {
	return filepath.Join(c.cfg.Dir, controllerName+".kubeconfig")
}

func (c *Cluster) startController(context.Context) error {
	return c.run(&c.controller, controllerName, "--kubeconfig", c.controllerConfig())
}

// KillAPIServer ends the API server at once, as a crash does. etcd stays.
func (c *Cluster) KillAPIServer() error { return c.server.Kill() }

// Stop ends all of it.
func (c *Cluster) Stop() error {
	var errs []error
	for _, p := range []*lab.Process{c.controller, c.server, c.etcd} {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	return errors.Join(errs...)
}
