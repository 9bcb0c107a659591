package scale

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// proxy has its own node.
type proxy struct {
	name    string
	node    *lab.Node
	argv    []string
	log     string
	dir     string
	http    *http.Client
	process *lab.Process
	started time.Time
}

const metricsAddress = "127.0.0.1:10249"

// newProxy prepares a node without rules.
func newProxy(ctx context.Context, n *lab.Node, a *api, name string, s size) (*proxy, error) {
	p := &proxy{
		name: name, node: n, dir: filepath.Join(runDir, name),
		log: filepath.Join(logDir, fmt.Sprintf("%s-%s.log", name, s)),
		// Compression would cost the measured proxy CPU.
		http: &http.Client{Transport: &http.Transport{DialContext: n.Dial, DisableCompression: true}},
	}
	if err := errors.Join(os.RemoveAll(p.dir), os.MkdirAll(filepath.Join(p.dir, "state"), 0o750), os.RemoveAll(p.log)); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	if _, err := n.Run(ctx, "nft", "flush", "ruleset"); err != nil {
		return nil, err
	}
	switch name {
	case weft, base:
		p.argv = []string{
			tests.Path(name), "run", "--kubeconfig", a.kubeconfig, "--hostname-override", node, "--cluster-cidr", n.PodCIDRs[0].String(),
			// A namespace may not change the machine's limits.
			"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
			"--socket", filepath.Join(p.dir, "weft.sock"), "--state-dir", filepath.Join(p.dir, "state"),
			"--metrics-bind-address", metricsAddress,
		}
	case kubeProxy, kubeProxyIPTables:
		mode := "nftables"
		if name == kubeProxyIPTables {
			mode = "iptables"
		}
		config := filepath.Join(p.dir, "config.yaml")
		if err := os.WriteFile(config, fmt.Appendf(nil, kubeProxyConfig, mode, a.kubeconfig, n.PodCIDRs[0], metricsAddress), 0o600); err != nil {
			return nil, fmt.Errorf("write configuration: %w", err)
		}
		p.argv = []string{tests.Path(kubeProxy), "--config", config, "--hostname-override", node}
	default:
		return nil, fmt.Errorf("-scale.proxy=%s: want %s or %s", name, weft, kubeProxy)
	}
	return p, nil
}

// kubeProxyConfig makes kube-proxy commit at once, as weft does: its default would add up to a second.
const kubeProxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: %s
clientConnection: {kubeconfig: %q}
clusterCIDR: %q
metricsBindAddress: %q
nftables: {minSyncPeriod: 1ms}
iptables: {minSyncPeriod: 1ms}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`

func (p *proxy) start() error {
	var err error
	p.started = time.Now()
	p.process, err = p.node.Start(p.name, p.log, nil, p.argv...)
	return err
}

// The rules stay.
func (p *proxy) stop() error {
	if p.process == nil {
		return nil
	}
	err := p.process.Stop(30 * time.Second)
	p.process = nil
	return err
}

// cpu includes child processes, because kube-proxy runs nft for every transaction.
func (p *proxy) cpu() (time.Duration, error) { return p.process.CPU() }

// in MiB
func (p *proxy) memory() (resident, peak float64, err error) { return p.process.Memory() }

// synced waits until the proxy reports that the kernel is up to date, and returns the time of that.
func (p *proxy) synced(ctx context.Context) (time.Time, error) {
	const metric = `kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"}`
	for {
		value, err := p.metric(ctx, metric)
		if err == nil && value > 0 {
			return time.UnixMicro(int64(value * 1e6)), nil
		}
		if end := p.process.Err(); end != nil {
			return time.Time{}, end
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return time.Time{}, fmt.Errorf("wait for %s to be in sync: %w", p.name, errors.Join(ctx.Err(), err))
		}
	}
}

// 0 for a missing metric
func (p *proxy) metric(ctx context.Context, name string) (float64, error) {
	body, err := p.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, lines.Err()
}

func (p *proxy) get(ctx context.Context, path string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metricsAddress+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := p.http.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("get %s: %s", path, answer.Status)
	}
	return answer.Body, nil
}
