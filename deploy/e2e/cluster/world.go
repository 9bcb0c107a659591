package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// WorldConfig configures a World.
type WorldConfig struct {
	// Lab needs no routed prefixes.
	Lab lab.Config
	// Members is the number of nodes in the cluster, 0 for all. Other nodes are only in its network.
	Members int
	// Zones are the members' zones, in turn; it may be empty.
	Zones []string
	// ControlPlane is cmd/controlplane, Node is cmd/node.
	ControlPlane, Node string
	// Dir and LogDir are made anew.
	Dir, LogDir string
}

// World is a network with a full cluster, whose nodes run the kubelet.
type World struct {
	Lab      *lab.Lab
	Cluster  *Cluster
	Members  []*lab.Node
	Kubelets []*lab.Process
	// Kubeconfig is the administrator's file, KubectlPath the program.
	Kubeconfig, KubectlPath string
}

// StartWorld does not wait for the kubelets.
func StartWorld(ctx context.Context, cfg WorldConfig) (*World, error) {
	w := &World{Kubeconfig: filepath.Join(cfg.Dir, "admin.kubeconfig")}
	if err := w.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

func (w *World) start(ctx context.Context, cfg WorldConfig) error {
	for _, dir := range []string{cfg.LogDir, cfg.Dir} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	cfg.Lab.Routed = ServiceCIDRs()
	var err error
	if w.Lab, err = lab.New(cfg.Lab); err != nil {
		return err
	}
	w.Members = w.Lab.Nodes[:cmp.Or(cfg.Members, len(w.Lab.Nodes))]
	w.Cluster, err = Start(ctx, Config{Binary: cfg.ControlPlane, Dir: cfg.Dir, LogDir: cfg.LogDir, Host: w.Lab.Control, Full: true})
	if err != nil {
		return err
	}
	if err := w.Cluster.WriteKubeconfig(w.Kubeconfig, w.Cluster.Admin().BearerToken); err != nil {
		return err
	}
	if w.KubectlPath, err = LinkKubectl(cfg.ControlPlane, cfg.Dir); err != nil {
		return err
	}
	if err := w.Cluster.CreateNodes(ctx, w.Members, cfg.Zones...); err != nil {
		return err
	}
	for _, n := range w.Members {
		p, err := w.Cluster.StartKubelet(n, cfg.Node, w.Kubeconfig)
		if err != nil {
			return err
		}
		w.Kubelets = append(w.Kubelets, p)
	}
	return nil
}

// Kubectl acts as an administrator in Control.
func (w *World) Kubectl(ctx context.Context, args ...string) (string, error) {
	return w.Lab.Control.Run(ctx, w.KubectlPath, append([]string{"--kubeconfig", w.Kubeconfig}, args...)...)
}

// Ended returns an error if a kubelet has ended.
func (w *World) Ended() error {
	var errs []error
	for _, p := range w.Kubelets {
		errs = append(errs, p.Err())
	}
	return errors.Join(errs...)
}

// Stop ends all processes.
func (w *World) Stop() error {
	errs := []error{w.Ended()}
	for _, p := range w.Kubelets {
		errs = append(errs, p.Stop(30*time.Second))
	}
	if w.Cluster != nil {
		errs = append(errs, w.Cluster.Stop())
	}
	if w.Lab != nil {
		w.Lab.Close()
	}
	return errors.Join(errs...)
}
