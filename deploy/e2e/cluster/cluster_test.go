package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

const patience = 3 * time.Minute

// newConfig returns the configuration of a cluster of stand-ins.
func newConfig(t *testing.T, full bool) Config {
	t.Helper()
	l, err := lab.New(lab.Config{Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return Config{Binary: "/proc/self/exe", Dir: t.TempDir(), LogDir: t.TempDir(), Host: l.Control, Full: full}
}

func start(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("Stop = %v", err)
		}
		expectNoProcess(t, cfg)
	})
	return c
}

func expectNoProcess(t *testing.T, cfg Config) {
	t.Helper()
	if left, err := lab.Processes(cfg.Dir); err != nil || len(left) > 0 {
		t.Errorf("these processes run: %q, %v", left, err)
	}
}

func expectLog(t *testing.T, c *Cluster, program, want string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var b []byte
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		b, _ = os.ReadFile(filepath.Join(c.cfg.LogDir, program+".log"))
		if strings.Contains(string(b), want) {
			return
		}
	}
	t.Errorf("log of %s has no %q:\n%s", program, want, b)
}

// controllersOf returns the arguments for kube-controller-manager's controllers.
func controllersOf(t *testing.T, cfg Config) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(cfg.LogDir, controllerManager+".log"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.Split(parseFlags(strings.Fields(first))["controllers"], ",")
}

func TestSmallCluster(t *testing.T) {
	cfg := newConfig(t, false)
	c := start(t, cfg)
	expectLog(t, c, controllerManager, "system:kube-controller-manager")
	if got := controllersOf(t, cfg); !slices.Equal(got, []string{endpointSlices}) {
		t.Errorf("controllers are %q, want only %s", got, endpointSlices)
	}
	if _, err := os.Stat(filepath.Join(cfg.LogDir, scheduler+".log")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the scheduler was started: %v", err)
	}
}

func TestFullCluster(t *testing.T) {
	cfg := newConfig(t, true)
	c := start(t, cfg)
	expectLog(t, c, controllerManager, "system:kube-controller-manager")
	expectLog(t, c, scheduler, "system:kube-scheduler")
	if got := controllersOf(t, cfg); !slices.Equal(got, allControllers()) {
		t.Errorf("controllers are %q, want %q", got, allControllers())
	}
}

// Controllers end with the API server in a real cluster too, when they cannot renew their lease.
func TestAPIServerStartsAnew(t *testing.T) {
	c := start(t, newConfig(t, true))
	manager, schedulers, etcd := c.controllers.PID(), c.scheduler.PID(), c.etcd.PID()
	if err := c.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	readyz := func() (string, error) {
		b, err := c.client.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return string(b), err
	}
	if got, err := readyz(); err == nil {
		t.Errorf("the API server answers %q after KillAPIServer", got)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := readyz(); err != nil || got != "admin" {
		t.Errorf("GET /readyz = %q, %v; want the administrator", got, err)
	}
	if c.controllers.PID() == manager || c.scheduler.PID() == schedulers || c.etcd.PID() != etcd {
		t.Errorf("processes are %d, %d and etcd %d, were %d, %d and %d; want new controllers and the same etcd",
			c.controllers.PID(), c.scheduler.PID(), c.etcd.PID(), manager, schedulers, etcd)
	}
}

// The error has etcd's reason, and all programs end.
func TestStartFails(t *testing.T) {
	cfg := newConfig(t, true)
	if err := os.WriteFile(filepath.Join(cfg.Dir, broken), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("Start = %v, want what etcd says", err)
	}
	expectNoProcess(t, cfg)
}

func TestTokenAndKubeconfig(t *testing.T) {
	c := start(t, newConfig(t, false))
	const want = "/api/v1/namespaces/kube-system/serviceaccounts/weft/token for 86400 s"
	token, err := c.Token(t.Context(), "kube-system", "weft")
	if err != nil || token != want {
		t.Errorf("Token = %q, %v; want %q", token, err, want)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.WriteKubeconfig(path, "secret"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != c.URL() || config.BearerToken != "secret" || string(config.CAData) != string(c.CA()) {
		t.Errorf("kubeconfig has %s, token %q, and authority\n%s", config.Host, config.BearerToken, config.CAData)
	}
}
