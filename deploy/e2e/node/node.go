package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
)

// Config configures a node.
type Config struct {
	// the name of the Node object
	Name string
	// Addresses are the node's own, at most one of each family, the primary first.
	Addresses []netip.Addr
	// with the credentials of a node
	Kubeconfig string
	// Root is the absolute path of a directory for state and logs. It must be short, because it has
	// Unix sockets.
	Root string
	// the addresses of the DNS Service
	ClusterDNS []netip.Addr
	Runtime    Runtime
}

// Runtime is a container runtime.
type Runtime interface {
	// Serve serves CRI on a socket until ctx ends. Then it ends all containers and returns.
	Serve(ctx context.Context, socket string) error
}

// The reported capacity (memory in bytes), which is not enforced, and the bound of the admitted pods.
const (
	cores   = 8
	memory  = 16 << 30
	maxPods = 110
	// verbosity is the level of the kubelet's log on standard error.
	verbosity = 2
)

// maxRoot leaves room in a socket's address (107 bytes) for the longest path below the root.
const maxRoot = 60

func (c *Config) validate() error {
	var errs []error
	if c.Name == "" {
		errs = append(errs, errors.New("no name"))
	}
	if len(c.Addresses) == 0 || len(c.Addresses) > 2 {
		errs = append(errs, fmt.Errorf("%d addresses, want one or two", len(c.Addresses)))
	} else if len(c.Addresses) == 2 && c.Addresses[0].Is4() == c.Addresses[1].Is4() {
		errs = append(errs, fmt.Errorf("addresses %s and %s are of one family", c.Addresses[0], c.Addresses[1]))
	}
	if c.Kubeconfig == "" {
		errs = append(errs, errors.New("no kubeconfig"))
	}
	if !filepath.IsAbs(c.Root) || filepath.Clean(c.Root) != c.Root || len(c.Root) > maxRoot {
		errs = append(errs, fmt.Errorf("root %q: want a clean absolute path of at most %d bytes", c.Root, maxRoot))
	}
	if c.Runtime == nil {
		errs = append(errs, errors.New("no runtime"))
	}
	return errors.Join(errs...)
}

// Run runs the node until ctx or the runtime ends, and all containers have ended. The caller must then
// end the process, because parts of the kubelet continue.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return fmt.Errorf("run node: %w", err)
	}
	if err := os.MkdirAll(cfg.Root, 0o755); err != nil {
		return fmt.Errorf("run node: %w", err)
	}
	server, err := newServer(cfg)
	if err != nil {
		return fmt.Errorf("run node: %w", err)
	}
	if err := logsapi.ValidateAndApply(&server.Logging, utilfeature.DefaultFeatureGate); err != nil {
		return fmt.Errorf("run node: set up the log: %w", err)
	}
	deps, err := newDependencies(ctx, server, cfg)
	if err != nil {
		return fmt.Errorf("run node: %w", err)
	}
	served, stop, err := serve(ctx, cfg.Runtime, cfg.socket())
	if err != nil {
		return fmt.Errorf("run node: %w", err)
	}
	kubelet := make(chan error, 1)
	go func() { kubelet <- kubeletapp.Run(ctx, server, deps, utilfeature.DefaultFeatureGate) }()
	select {
	case err = <-kubelet:
	case failure := <-served:
		return fmt.Errorf("run node: container runtime: %w", failure)
	}
	stop()
	if err := errors.Join(err, <-served); err != nil {
		return fmt.Errorf("run node: %w", err)
	}
	return nil
}

func (c *Config) socket() string { return filepath.Join(c.Root, "cri.sock") }
