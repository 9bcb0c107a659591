package specs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Policies is a run of the conformance suite of ClusterNetworkPolicy.
type Policies struct {
	// Program is cmd/clusterpolicy.
	Program string
	// Kubeconfig has an administrator's credentials. The cluster has the definition of
	// PolicyDefinition.
	Kubeconfig string
	// See report.PolicyOutput.
	Output string
}

// weft does not support nodes as peers. The tests for this feature skip themselves.
const unsupported = "ClusterNetworkPolicyEgressNodePeers"

// RunPolicies runs the suite, with the tests of all features that weft has.
//
// Possible errors: [ErrFailed]; the program cannot be started, or did not end before the timeout.
func RunPolicies(ctx context.Context, p Policies) error {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(p.Output), 0o755); err != nil {
		return fmt.Errorf("make directory for results: %w", err)
	}
	out, err := os.Create(p.Output)
	if err != nil {
		return fmt.Errorf("create output: %w", err)
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, p.Program, "-test.v", "-all-features", "-exempt-features="+unsupported)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	exit := new(exec.ExitError)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("run tests of ClusterNetworkPolicy: %w", context.Cause(ctx))
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return ErrFailed
	default:
		return fmt.Errorf("run tests of ClusterNetworkPolicy: %w: see %s", err, p.Output)
	}
}

// PolicyDefinition returns the CustomResourceDefinition file of ClusterNetworkPolicy. The working
// directory must be in the module whose go.mod has the suite.
func PolicyDefinition(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/network-policy-api").Output()
	if err != nil {
		return "", fmt.Errorf("find module of ClusterNetworkPolicy: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "config/crd/experimental/policy.networking.k8s.io_clusternetworkpolicies.yaml"), nil
}
