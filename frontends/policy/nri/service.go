package nri

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/nri/nripb"
)

// event is an event that a plugin can subscribe to.
type event int32

// The events of pods.
const (
	// eventRun arrives after a pod has its addresses, before its containers are created.
	eventRun event = 1
	// eventStop arrives after the containers have stopped.
	eventStop event = 2
	// eventRemove arrives when the runtime forgets the pod.
	eventRemove event = 3
)

// subscription has the bits of all events.
const subscription = 1<<(eventRun-1) | 1<<(eventStop-1) | 1<<(eventRemove-1)

// methods returns the methods that the runtime calls.
func (s *session) methods() map[string]ttrpc.Method {
	return map[string]ttrpc.Method{
		"Configure":   method(s.configure),
		"Synchronize": method(s.synchronize),
		"Shutdown":    method(func(context.Context, *nripb.Empty) (*nripb.Empty, error) { return &nripb.Empty{}, nil }),
		"StateChange": method(func(ctx context.Context, req *nripb.StateChangeEvent) (*nripb.Empty, error) {
			return s.pod(ctx, event(req.GetEvent()), req.GetPod())
		}),
		"RunPodSandbox":    s.podMethod(eventRun),
		"StopPodSandbox":   s.podMethod(eventStop),
		"RemovePodSandbox": s.podMethod(eventRemove),
	}
}

// podMethod returns the method for an event.
func (s *session) podMethod(e event) ttrpc.Method {
	return method(func(ctx context.Context, req *nripb.PodSandboxRequest) (*nripb.Empty, error) {
		return s.pod(ctx, e, req.GetPod())
	})
}

// method returns a method that decodes its request.
func method[Req any, PtrReq interface {
	*Req
	proto.Message
}, Resp proto.Message](f func(context.Context, PtrReq) (Resp, error)) ttrpc.Method {
	return func(ctx context.Context, decode func(any) error) (any, error) {
		req := PtrReq(new(Req))
		if err := decode(req); err != nil {
			return nil, err
		}
		return f(ctx, req)
	}
}

// configure subscribes to events.
func (s *session) configure(_ context.Context, req *nripb.ConfigureRequest) (*nripb.ConfigureResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit := time.Duration(req.GetRequestTimeout()) * time.Millisecond / 2; limit > 0 {
		s.wait = min(s.wait, limit)
	}
	s.cfg.Logger.Info("connected to the container runtime", "name", truncate(req.GetRuntimeName()), "version", truncate(req.GetRuntimeVersion()))
	return &nripb.ConfigureResponse{Events: int32(subscription)}, nil
}

// synchronize replaces everything that is known by what runs.
func (s *session) synchronize(_ context.Context, req *nripb.SynchronizeRequest) (*nripb.SynchronizeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed()
	}
	for _, p := range req.GetPods() {
		if o := s.parse(p); o != nil {
			s.sandboxes = append(s.sandboxes, o)
		}
	}
	if len(s.sandboxes) > model.MaxSandboxes {
		return nil, status.Error(codes.ResourceExhausted, fmt.Sprintf("more than %d pods", model.MaxSandboxes))
	}
	if !req.GetMore() {
		all := s.sandboxes
		s.sandboxes, s.complete = nil, true
		s.cfg.Deliver(func(m *model.Model) { m.SetSandboxes(all) })
		s.syncOnce.Do(func() { close(s.synced) })
		s.cfg.Logger.Info("the container runtime has reported its pods", "pods", len(all))
	}
	return &nripb.SynchronizeResponse{More: req.GetMore()}, nil
}

// pod handles an event of a pod. It returns an error only after the connection has ended,
// because an error would refuse the pod.
func (s *session) pod(ctx context.Context, e event, p *nripb.PodSandbox) (*nripb.Empty, error) {
	switch e {
	case eventRun:
		committed, wait, err := s.start(p)
		if err != nil {
			return nil, err
		}
		if committed != nil {
			s.await(ctx, committed, wait, p)
		}
	case eventStop, eventRemove:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return nil, errClosed()
		}
		s.cfg.Deliver(func(m *model.Model) { m.DeleteSandbox(p.GetId()) })
	default:
		// An event that was not subscribed to.
	}
	return &nripb.Empty{}, nil
}

// start delivers a pod that starts. It returns no channel for one that is not valid, or has
// no address.
func (s *session) start(p *nripb.PodSandbox) (committed <-chan struct{}, wait time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, errClosed()
	}
	o := s.parse(p)
	if o == nil {
		return nil, 0, nil
	}
	committed = s.cfg.Deliver(func(m *model.Model) { m.SetSandbox(o) })
	if len(p.GetIps()) == 0 {
		return nil, 0, nil
	}
	return committed, s.wait, nil
}

// await waits for the commit of a pod that starts.
func (s *session) await(ctx context.Context, committed <-chan struct{}, wait time.Duration, p *nripb.PodSandbox) {
	began := time.Now()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-committed:
		s.cfg.Logger.Debug("the policies of a new pod are in force", "namespace", p.GetNamespace(), "name", p.GetName(), "wait", time.Since(began))
	case <-t.C:
		s.cfg.Logger.Warn("a pod starts before its policies are in force", "namespace", p.GetNamespace(), "name", p.GetName(), "wait", wait)
	case <-ctx.Done():
	}
}

// parse returns what the model keeps of a pod, nil if it is not valid.
func (s *session) parse(p *nripb.PodSandbox) *model.SandboxObject {
	o, err := model.ParseSandbox(&model.Sandbox{
		ID: p.GetId(), UID: types.UID(p.GetUid()), Name: types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()},
		Labels: p.GetLabels(), Addresses: p.GetIps(),
	})
	if err != nil {
		s.cfg.Logger.Warn("ignored a pod of the container runtime", "error", err.Error())
		return nil
	}
	return o
}

func errClosed() error { return status.Error(codes.Unavailable, "the connection has ended") }

// truncate shortens a text of the runtime for the log.
func truncate(s string) string { return s[:min(len(s), 64)] }
