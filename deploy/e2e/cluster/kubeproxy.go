package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// KubeProxy is kube-proxy as installed by kubeadm: a ConfigMap, and a DaemonSet whose Pods need nodes.
type KubeProxy struct {
	// Mode is nftables, iptables-nft or iptables-legacy.
	Mode         string
	ClusterCIDRs []netip.Prefix
}

//go:embed kubeproxy.yaml
var kubeProxy string

// CreateKubeProxy creates the objects of kube-proxy.
func (c *Cluster) CreateKubeProxy(ctx context.Context, p KubeProxy) error {
	programs := filepath.Join(c.cfg.Dir, "programs")
	if err := LinkPrograms(programs, p.Mode); err != nil {
		return fmt.Errorf("create kube-proxy: %w", err)
	}
	mode, _, _ := strings.Cut(p.Mode, "-")
	text := strings.NewReplacer("MODE", mode, "SERVER", c.URL(), "CLUSTER_CIDR", lab.Join(p.ClusterCIDRs), "PROGRAMS", programs).Replace(kubeProxy)
	if err := c.CreateObjects(ctx, []byte(text)); err != nil {
		return fmt.Errorf("create kube-proxy: %w", err)
	}
	return nil
}

// LinkPrograms makes a directory with the iptables of a mode. It is empty in mode nftables.
func LinkPrograms(dir, mode string) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if mode == "nftables" {
		return nil
	}
	for _, family := range []string{"ip", "ip6"} {
		for _, verb := range []string{"", "-save", "-restore"} {
			target, err := exec.LookPath(strings.Replace(mode, "ip", family, 1) + verb)
			if err != nil {
				return fmt.Errorf("find programs of %s: %w", mode, err)
			}
			if err := os.Symlink(target, filepath.Join(dir, family+"tables"+verb)); err != nil {
				return fmt.Errorf("link programs of %s: %w", mode, err)
			}
		}
	}
	return nil
}
