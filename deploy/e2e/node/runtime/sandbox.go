package runtime

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type sandbox struct {
	id         string
	config     *cri.PodSandboxConfig
	created    time.Time
	namespaces *namespaces
	// link is the node's end, empty on the node's network. number is the pod's number in pool.
	link      string
	number    int
	addresses []netip.Addr
	// Runtime.mu guards stopped.
	stopped bool
}

func (s *sandbox) onHost() bool {
	return s.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == cri.NamespaceMode_NODE
}

// RunPodSandbox implements CRI.
func (r *Runtime) RunPodSandbox(_ context.Context, req *cri.RunPodSandboxRequest) (*cri.RunPodSandboxResponse, error) {
	s := &sandbox{id: newID(), config: req.GetConfig(), created: time.Now()}
	// Without options, containers get their own namespaces too.
	if o := s.config.GetLinux().GetSecurityContext().GetNamespaceOptions(); o != nil && o.GetPid() == cri.NamespaceMode_POD {
		return nil, status.Error(codes.Unimplemented, "shareProcessNamespace: every container has a PID namespace of its own")
	}
	var err error
	if s.config.GetHostname() == "" { // on the host's network
		if s.config.Hostname, err = os.Hostname(); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	s.namespaces, err = newNamespaces(s.config.GetHostname(), !s.onHost(), s.config.GetLinux().GetSysctls())
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if !s.onHost() {
		if err := r.attach(s); err != nil {
			s.namespaces.close()
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	r.mu.Lock()
	r.sandboxes[s.id] = s
	r.mu.Unlock()
	if len(s.forwards()) > 0 {
		if err := r.syncPorts(); err != nil {
			err = errors.Join(err, r.stopSandbox(s))
			r.forget(s)
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	return &cri.RunPodSandboxResponse{PodSandboxId: s.id}, nil
}

func (r *Runtime) attach(s *sandbox) error {
	r.mu.Lock()
	number, err := r.addresses.allocate()
	s.number, s.addresses = number, r.addresses.addresses(number)
	gateways := r.addresses.addresses(gatewayNumber)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	s.link = "pod" + s.id[:12]
	if err := connect(s.namespaces, s.link, s.addresses, gateways); err != nil {
		return errors.Join(err, r.detach(s))
	}
	return nil
}

func (r *Runtime) detach(s *sandbox) error {
	if s.link == "" {
		return nil
	}
	err := disconnect(s.link)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addresses.free(s.number)
	return err
}

// StopPodSandbox implements CRI.
func (r *Runtime) StopPodSandbox(_ context.Context, req *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	s, err := r.findSandbox(req.GetPodSandboxId())
	if err != nil {
		return &cri.StopPodSandboxResponse{}, nil
	}
	if err := r.stopSandbox(s); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &cri.StopPodSandboxResponse{}, nil
}

func (r *Runtime) stopSandbox(s *sandbox) error {
	for _, c := range r.containersOf(s) {
		c.kill()
	}
	r.mu.Lock()
	stopped := s.stopped
	s.stopped = true
	r.mu.Unlock()
	if stopped {
		return nil
	}
	var errs []error
	if len(s.forwards()) > 0 {
		errs = append(errs, r.syncPorts())
	}
	errs = append(errs, r.detach(s))
	s.namespaces.close()
	return errors.Join(errs...)
}

func (r *Runtime) containersOf(s *sandbox) []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*container
	for _, c := range r.containers {
		if c.sandbox == s {
			all = append(all, c)
		}
	}
	return all
}

// RemovePodSandbox implements CRI.
func (r *Runtime) RemovePodSandbox(_ context.Context, req *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	s, err := r.findSandbox(req.GetPodSandboxId())
	if err != nil {
		return &cri.RemovePodSandboxResponse{}, nil
	}
	if err := r.stopSandbox(s); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	for _, c := range r.containersOf(s) {
		r.remove(c)
	}
	r.forget(s)
	return &cri.RemovePodSandboxResponse{}, nil
}

func (r *Runtime) forget(s *sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sandboxes, s.id)
}

// The caller holds Runtime.mu.
func (s *sandbox) state() cri.PodSandboxState {
	if s.stopped {
		return cri.PodSandboxState_SANDBOX_NOTREADY
	}
	return cri.PodSandboxState_SANDBOX_READY
}

// PodSandboxStatus implements CRI.
func (r *Runtime) PodSandboxStatus(_ context.Context, req *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	s, err := r.findSandbox(req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	network := &cri.PodSandboxNetworkStatus{}
	for i, a := range addressesOf(s.addresses) {
		if i == 0 {
			network.Ip = a
		} else {
			network.AdditionalIps = append(network.AdditionalIps, &cri.PodIP{Ip: a})
		}
	}
	return &cri.PodSandboxStatusResponse{Status: &cri.PodSandboxStatus{
		Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created.UnixNano(), Network: network,
		Linux: &cri.LinuxPodSandboxStatus{Namespaces: &cri.Namespace{
			Options: s.config.GetLinux().GetSecurityContext().GetNamespaceOptions(),
		}},
		Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
	}}, nil
}

// ListPodSandbox implements CRI.
func (r *Runtime) ListPodSandbox(_ context.Context, req *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	f := req.GetFilter()
	r.mu.Lock()
	defer r.mu.Unlock()
	list := &cri.ListPodSandboxResponse{}
	for _, s := range r.sandboxes {
		if f.GetId() != "" && !strings.HasPrefix(s.id, f.GetId()) ||
			f.GetState() != nil && f.GetState().GetState() != s.state() || !contains(s.config.GetLabels(), f.GetLabelSelector()) {
			continue
		}
		list.Items = append(list.Items, &cri.PodSandbox{
			Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created.UnixNano(),
			Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		})
	}
	return list, nil
}

func contains(labels, selector map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}
