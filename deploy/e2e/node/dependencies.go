package node

import (
	"context"
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet"
	"k8s.io/kubernetes/pkg/util/oom"
)

// newDependencies returns a real kubelet's dependencies, except the three that need cgroups or change
// the machine.
func newDependencies(ctx context.Context, s *options.KubeletServer, cfg Config) (*kubelet.Dependencies, error) {
	deps, err := kubeletapp.UnsecuredDependencies(ctx, s, utilfeature.DefaultFeatureGate)
	if err != nil {
		return nil, fmt.Errorf("make parts of kubelet: %w", err)
	}
	machine, err := newMachine(cfg)
	if err != nil {
		return nil, err
	}
	deps.CAdvisorInterface = machine
	deps.ContainerManager = newContainerManager()
	deps.OOMAdjuster = oom.NewFakeOOMAdjuster()
	return deps, nil
}
