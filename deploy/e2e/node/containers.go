package node

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm"
)

// containerManager returns no cgroup limits for a pod. The kubelet's stub for nodes without cgroups
// returns an error, which would prevent each status.
type containerManager struct{ cm.ContainerManager }

func newContainerManager() cm.ContainerManager {
	return containerManager{cm.NewStubContainerManager()}
}

// NewPodContainerManager returns the manager of the cgroups of pods.
func (m containerManager) NewPodContainerManager() cm.PodContainerManager {
	return podContainerManager{m.ContainerManager.NewPodContainerManager()}
}

type podContainerManager struct{ cm.PodContainerManager }

// GetPodCgroupConfig returns nil, which means a cgroup without limits.
func (podContainerManager) GetPodCgroupConfig(*v1.Pod, v1.ResourceName) (*cm.ResourceConfig, error) {
	return nil, nil
}
