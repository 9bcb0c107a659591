package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// ServiceCIDRs are the prefixes of ClusterIPs, IPv4 (the default family) first.
func ServiceCIDRs() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:10:96::/112")}
}

// Config configures a control plane.
type Config struct {
	Binary string
	// APIServer is a program with another kube-apiserver, or empty.
	APIServer string
	// Dir gets etcd's data and the credentials, LogDir the logs.
	Dir, LogDir string
	// Host is in the caller's namespace.
	Host *lab.Host
	// Full runs all controllers and a scheduler, for a cluster with Pods. Otherwise only the
	// EndpointSlice controller runs.
	Full bool
}

// Cluster is a running control plane.
type Cluster struct {
	cfg    Config
	creds  *credentials
	admin  *rest.Config
	client *kubernetes.Clientset
	etcd   *lab.Process
	server *lab.Process
	// scheduler is nil if the cluster is not full.
	controllers, scheduler *lab.Process
}

const (
	apiServer  = "kube-apiserver"
	etcdURL    = "http://127.0.0.1:2379"
	peerURL    = "http://127.0.0.1:2380"
	securePort = 6443
	// ready bounds the wait for /readyz. It takes 4 s on an idle machine.
	ready = 2 * time.Minute
)

// Start starts a control plane. It returns when the API server is ready.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	c := &Cluster{cfg: cfg}
	serving := append([]netip.Addr{netip.MustParseAddr("127.0.0.1"), ServiceCIDRs()[0].Addr().Next(), ServiceCIDRs()[1].Addr().Next()}, cfg.Host.Addresses.All()...)
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
	for _, start := range []func(context.Context) error{c.startEtcd, c.StartAPIServer, c.admitControllers, c.startControllers} {
		if err := start(ctx); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	return c, nil
}

// URL returns the API server's address for every node.
func (c *Cluster) URL() string {
	return "https://" + netip.AddrPortFrom(c.cfg.Host.Addresses.V4, securePort).String()
}

// CA returns the certificate authority of the API server, PEM.
func (c *Cluster) CA() []byte { return c.creds.authority }

// Client returns an administrator's client.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Admin returns the configuration of a client with all rights.
func (c *Cluster) Admin() *rest.Config { return c.admin }

func (c *Cluster) run(process **lab.Process, name string, flags ...string) (err error) {
	program := c.cfg.Binary
	if name == apiServer && c.cfg.APIServer != "" {
		program = c.cfg.APIServer
	}
	argv := append([]string{program, name}, flags...)
	*process, err = c.cfg.Host.Start(name, filepath.Join(c.cfg.LogDir, name+".log"), nil, argv...)
	return err
}

func (c *Cluster) startEtcd(context.Context) error {
	return c.run(&c.etcd, "etcd",
		"--name", "e2e", "--data-dir", filepath.Join(c.cfg.Dir, "etcd"),
		"--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
		"--initial-cluster", "e2e="+peerURL,
		// etcd's data ends with the test, and other programs share the disk.
		"--unsafe-no-fsync", "--log-level", "warn")
}

// StartAPIServer runs the API server, which must not be running, and waits until it is ready. The
// controllers restart, as after a lost lease.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	cidrs := ServiceCIDRs()
	err := c.run(&c.server, apiServer,
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
		// Names of nodes do not resolve.
		"--kubelet-preferred-address-types=InternalIP",
		"--profiling=false", "--v=1")
	if err != nil {
		return err
	}
	if err := c.waitReady(ctx); err != nil || c.controllers == nil {
		return err
	}
	if err := c.killControllers(); err != nil {
		return err
	}
	return c.startControllers(ctx)
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

// KillAPIServer ends the API server as a crash does. etcd stays.
func (c *Cluster) KillAPIServer() error { return c.server.Kill() }

// Stop ends all processes.
func (c *Cluster) Stop() error {
	var errs []error
	for _, p := range []*lab.Process{c.scheduler, c.controllers, c.server, c.etcd} {
		errs = append(errs, kill(p))
	}
	return errors.Join(errs...)
}

func kill(p *lab.Process) error {
	if p == nil {
		return nil
	}
	return p.Kill()
}
