package differential

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// side is a network with one proxy on its first node.
type side struct {
	name    string
	command func(s *side, kubeconfig string, c config) []string
	parent  *lab.Namespace
	lab     *lab.Lab
	// actors are the sources of probes by name: pods, "host" (the node itself) and "outside".
	actors map[string]*actor
	// web are the pods with servers: web-1 and web-2 on the node, web-3 and web-4 on the other.
	web   []*lab.Pod
	proxy *lab.Process
	// relay makes the API server reachable under its address in this network.
	relay net.Listener
}

type actor struct {
	*lab.Namespace
	addresses lab.Addresses
}

// vips are the prefixes of external and load balancer addresses.
var vips = []netip.Prefix{netip.MustParsePrefix("203.0.112.0/23"), netip.MustParsePrefix("fd00:203::/64")}

// webPorts are every web pod's; odd is a port that a slice may name differently.
var webPorts = []uint16{8080, 9090}

const kubeProxyName = "kube-proxy"

// newSide makes a separate network namespace, because both sides have the same addresses.
func newSide(name string, command func(*side, string, config) []string) (*side, error) {
	s := &side{name: name, command: command, actors: map[string]*actor{}}
	var err error
	if s.parent, err = lab.NewNamespace(name); err != nil {
		return nil, err
	}
	err = s.parent.Do(func() error {
		var err error
		s.lab, err = lab.New(lab.Config{Nodes: 2, Routed: append(cluster.ServiceCIDRs(), vips...)})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.actors["host"] = &actor{s.lab.Nodes[0].Namespace, s.lab.Nodes[0].Addresses}
	s.actors["outside"] = &actor{s.lab.Outside.Namespace, s.lab.Outside.Addresses}
	for i, name := range []string{"pod", "web-1", "web-2", "far", "web-3", "web-4"} {
		p, err := s.lab.Nodes[i/3].NewPod(name)
		if err != nil {
			return nil, err
		}
		s.actors[name] = &actor{p.Namespace, p.Addresses}
		if !strings.HasPrefix(name, "web-") {
			continue
		}
		s.web = append(s.web, p)
		if err := p.Serve(webPorts...); err != nil {
			return nil, err
		}
		if err := serveSCTP(p); err != nil {
			return nil, err
		}
	}
	return s, s.unlimit()
}

// unlimit removes the limit of ICMP errors, which many probes from one address would reach.
func (s *side) unlimit() error {
	all := []*lab.Namespace{s.lab.Control.Namespace}
	for _, a := range s.actors {
		all = append(all, a.Namespace)
	}
	for _, n := range s.lab.Nodes {
		all = append(all, n.Namespace)
	}
	for _, n := range all {
		for path, value := range map[string]string{
			"net/ipv4/icmp_ratelimit": "0", "net/ipv6/icmp/ratelimit": "0", "net/ipv4/icmp_msgs_per_sec": "100000", "net/ipv4/icmp_msgs_burst": "10000",
		} {
			if err := n.Sysctl(path, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// config has flags that both proxies share.
type config struct {
	// name is for messages and log files.
	name  string
	flags []string
}

// detectPods is the default flags to detect pods.
func (c config) detectPods() []string {
	for _, f := range c.flags {
		if strings.HasPrefix(f, "--cluster-cidr") || strings.HasPrefix(f, "--detect-local-mode") {
			return nil
		}
	}
	return []string{"--cluster-cidr=10.244.0.0/16,fd00:10:244::/48"}
}

func kubeProxy(_ *side, kubeconfig string, c config) []string {
	return kubeProxyArgs([]string{program("kube-proxy")}, kubeconfig, c)
}

func earlierKubeProxy(_ *side, kubeconfig string, c config) []string {
	return kubeProxyArgs([]string{program(earlier), "kube-proxy"}, kubeconfig, c)
}

func kubeProxyArgs(argv []string, kubeconfig string, c config) []string {
	return slices.Concat(argv, []string{
		"--kubeconfig", kubeconfig, "--hostname-override", node, "--proxy-mode", "nftables",
		// A namespace may not change the machine's limits.
		"--conntrack-max-per-core=0", "--conntrack-min=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		"--metrics-bind-address", "127.0.0.1:10249", "--healthz-bind-address", "0.0.0.0:10256", "--v=2", "--vmodule=proxier=4",
	}, c.detectPods(), c.flags)
}

func weft(s *side, kubeconfig string, c config) []string {
	dir := filepath.Join(runDir, s.name)
	return append([]string{
		program("weft"), "run", "--kubeconfig", kubeconfig, "--hostname-override", node,
		"--socket", filepath.Join(dir, "weft.sock"), "--state-dir", filepath.Join(dir, "state"),
		"--metrics-bind-address", "127.0.0.1:10249", "--healthz-bind-address", "0.0.0.0:10256",
	}, append(c.detectPods(), c.flags...)...)
}

// run starts the proxy on a node without rules.
func (s *side) run(ctx context.Context, kubeconfig string, c config) error {
	if err := s.stopProxy(); err != nil {
		return err
	}
	for _, argv := range [][]string{{"nft", "flush", "ruleset"}, {"conntrack", "-F"}} {
		if _, err := s.lab.Nodes[0].Run(ctx, argv[0], argv[1:]...); err != nil {
			return err
		}
	}
	// kube-proxy never learns its node's zone if its Node arrives between NewNodeTopologyConfig and
	// RegisterEventHandler (1.37.2, cmd/kube-proxy/app/server.go): it then has to start again.
	for attempt := 0; ; attempt++ {
		if err := s.launch(kubeconfig, c); err != nil || s.name != kubeProxyName {
			return err
		}
		err := lab.Within(ctx, time.Minute, func() error { return s.knowsZone(c) })
		if err == nil || attempt == 3 {
			return err
		}
		if err := s.stopProxy(); err != nil {
			return err
		}
	}
}

// knowsZone returns an error before kube-proxy has read its node.
func (s *side) knowsZone(c config) error {
	log, err := os.ReadFile(s.logFile(c))
	if n := strings.Count(string(log), "Updated proxier node topology labels"); err == nil && n < 2 {
		return fmt.Errorf("%s knows the zone of its node in %d of 2 families", s.name, n)
	}
	return err
}

func (s *side) logFile(c config) string { return filepath.Join(logDir, s.name+"-"+c.name+".log") }

// launch keeps the node's rules.
func (s *side) launch(kubeconfig string, c config) error {
	dir := filepath.Join(runDir, s.name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, "state"), 0o750)); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	var err error
	s.proxy, err = s.lab.Nodes[0].Start(s.name, s.logFile(c), nil, s.command(s, kubeconfig, c)...)
	return err
}

// The rules stay.
func (s *side) stopProxy() error {
	if s.proxy == nil {
		return nil
	}
	err := s.proxy.Stop(10 * time.Second)
	s.proxy = nil
	return err
}

func (s *side) close() error {
	err := s.stopProxy()
	if s.relay != nil {
		s.relay.Close()
	}
	s.lab.Close()
	return errors.Join(err, s.parent.Close())
}
