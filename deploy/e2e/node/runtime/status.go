package runtime

import (
	"context"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The caller holds c.mu.
func (c *container) state() cri.ContainerState {
	switch {
	case !c.finished.IsZero():
		return cri.ContainerState_CONTAINER_EXITED
	case c.process != nil:
		return cri.ContainerState_CONTAINER_RUNNING
	default:
		return cri.ContainerState_CONTAINER_CREATED
	}
}

// ContainerStatus implements CRI.
func (r *Runtime) ContainerStatus(_ context.Context, req *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error) {
	c, err := r.findContainer(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &cri.ContainerStatus{
		Id: c.id, Metadata: c.config.GetMetadata(), State: c.state(), CreatedAt: c.created.UnixNano(),
		Image: &cri.ImageSpec{Image: c.reference()}, ImageRef: "e2e/" + c.image.Name, ImageId: "e2e/" + c.image.Name,
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(), Mounts: c.config.GetMounts(),
		LogPath: c.log.path, Message: c.message,
	}
	if !c.started.IsZero() {
		s.StartedAt = c.started.UnixNano()
	}
	if !c.finished.IsZero() {
		s.FinishedAt, s.ExitCode = c.finished.UnixNano(), c.exit
		switch {
		case c.message != "":
			s.Reason = "ContainerCannotRun"
		case c.exit == 0:
			s.Reason = "Completed"
		default:
			s.Reason = "Error"
		}
	}
	return &cri.ContainerStatusResponse{Status: s}, nil
}

func (c *container) reference() string {
	if user := c.config.GetImage().GetUserSpecifiedImage(); user != "" {
		return user
	}
	return c.config.GetImage().GetImage()
}

// ListContainers implements CRI.
func (r *Runtime) ListContainers(_ context.Context, req *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	f := req.GetFilter()
	r.mu.Lock()
	defer r.mu.Unlock()
	list := &cri.ListContainersResponse{}
	for _, c := range r.containers {
		c.mu.Lock()
		state := c.state()
		c.mu.Unlock()
		if f.GetId() != "" && !strings.HasPrefix(c.id, f.GetId()) || f.GetState() != nil && f.GetState().GetState() != state ||
			f.GetPodSandboxId() != "" && f.GetPodSandboxId() != c.sandbox.id || !contains(c.config.GetLabels(), f.GetLabelSelector()) {
			continue
		}
		list.Containers = append(list.Containers, &cri.Container{
			Id: c.id, PodSandboxId: c.sandbox.id, Metadata: c.config.GetMetadata(), State: state, CreatedAt: c.created.UnixNano(),
			Image: &cri.ImageSpec{Image: c.reference()}, ImageRef: "e2e/" + c.image.Name, ImageId: "e2e/" + c.image.Name,
			Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		})
	}
	return list, nil
}

func resolvConf(dns *cri.DNSConfig) string {
	var b strings.Builder
	if len(dns.GetSearches()) > 0 {
		b.WriteString("search " + strings.Join(dns.GetSearches(), " ") + "\n")
	}
	for _, s := range dns.GetServers() {
		b.WriteString("nameserver " + s + "\n")
	}
	if len(dns.GetOptions()) > 0 {
		b.WriteString("options " + strings.Join(dns.GetOptions(), " ") + "\n")
	}
	return b.String()
}

// ListContainerStats implements CRI. Without cgroups it has no figures.
func (r *Runtime) ListContainerStats(context.Context, *cri.ListContainerStatsRequest) (*cri.ListContainerStatsResponse, error) {
	return &cri.ListContainerStatsResponse{}, nil
}

// ListPodSandboxStats implements CRI.
func (r *Runtime) ListPodSandboxStats(context.Context, *cri.ListPodSandboxStatsRequest) (*cri.ListPodSandboxStatsResponse, error) {
	return &cri.ListPodSandboxStatsResponse{}, nil
}

// UpdateContainerResources implements CRI: there are no limits.
func (r *Runtime) UpdateContainerResources(context.Context, *cri.UpdateContainerResourcesRequest) (*cri.UpdateContainerResourcesResponse, error) {
	return &cri.UpdateContainerResourcesResponse{}, nil
}

// UpdatePodSandboxResources implements CRI: there are no limits.
func (r *Runtime) UpdatePodSandboxResources(context.Context, *cri.UpdatePodSandboxResourcesRequest) (*cri.UpdatePodSandboxResourcesResponse, error) {
	return &cri.UpdatePodSandboxResourcesResponse{}, nil
}
