package nri

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/nri/nripb"
)

type event int32

const (
	// A pod has its addresses, but its containers do not exist yet.
	eventRun event = 1
	// The containers have stopped.
	eventStop event = 2
	// The runtime forgets the pod.
	eventRemove event = 3
)

const subscription = 1<<(eventRun-1) | 1<<(eventStop-1) | 1<<(eventRemove-1)

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

// A malformed request ends the session, because an error would refuse the pod.
func (s *session) podMethod(e event) ttrpc.Method {
	return func(ctx context.Context, decode func(any) error) (any, error) {
		var req nripb.PodSandboxRequest
		if err := decode(&req); err != nil {
			s.fail(fmt.Errorf("decode a request of the container runtime: %w", err))
			return &nripb.Empty{}, nil
		}
		return s.pod(ctx, e, req.GetPod())
	}
}

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

func (s *session) configure(_ context.Context, req *nripb.ConfigureRequest) (*nripb.ConfigureResponse, error) {
	if limit := time.Duration(req.GetRequestTimeout()) * time.Millisecond / 2; limit > 0 {
		s.wait.Store(min(s.wait.Load(), int64(limit)))
	}
	s.cfg.Logger.Info("connected to the container runtime", "name", truncate(req.GetRuntimeName()), "version", truncate(req.GetRuntimeVersion()))
	return &nripb.ConfigureResponse{Events: int32(subscription)}, nil
}

// synchronize does not wait for the delivery.
func (s *session) synchronize(_ context.Context, req *nripb.SynchronizeRequest) (*nripb.SynchronizeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.report.add(req, s.parse); err != nil {
		return nil, err
	}
	if !req.GetMore() {
		all := s.report.running()
		ended := len(s.report.pods) - len(all)
		s.report = report{}
		s.complete.Store(true)
		s.enqueue(func(m *model.Model) {
			m.SetSandboxes(all)
			s.counters.connected.Store(true)
			s.syncOnce.Do(func() { close(s.synced) })
		})
		s.cfg.Logger.Info("the container runtime has reported its pods", "pods", len(all), "ended", ended)
	}
	return &nripb.SynchronizeResponse{More: req.GetMore()}, nil
}

// An error would refuse the pod.
func (s *session) pod(ctx context.Context, e event, p *nripb.PodSandbox) (*nripb.Empty, error) {
	switch e {
	case eventRun:
		s.counters.requests.Add(1)
		if o := s.parse(p); o != nil {
			s.start(ctx, p, o)
		}
	case eventStop, eventRemove:
		s.counters.requests.Add(1)
		id := p.GetId()
		delivered := s.enqueue(func(m *model.Model) { m.DeleteSandbox(id) })
		select {
		case <-delivered:
		case <-time.After(time.Duration(s.wait.Load())):
		case <-ctx.Done():
		}
	default:
	}
	return &nripb.Empty{}, nil
}

func (s *session) start(ctx context.Context, p *nripb.PodSandbox, o *model.SandboxObject) {
	began, wait := time.Now(), time.Duration(s.wait.Load())
	late := time.After(wait)
	delivered := s.enqueue(func(m *model.Model) { m.SetSandbox(o) })
	if len(p.GetIps()) == 0 {
		return
	}
	var committed <-chan struct{}
	for {
		select {
		case committed = <-delivered:
			delivered = nil
			continue
		case <-committed:
			s.cfg.Isolated(time.Since(began))
			s.cfg.Logger.Debug("the policies of a new pod are in force", "namespace", p.GetNamespace(), "name", p.GetName(), "wait", time.Since(began))
		case <-late:
			s.counters.late.Add(1)
			s.cfg.Isolated(wait)
			s.cfg.Logger.Warn("a pod starts before its policies are in force", "namespace", p.GetNamespace(), "name", p.GetName(), "wait", wait)
		case <-ctx.Done():
		}
		return
	}
}

// parse returns nil for an invalid pod.
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

func truncate(s string) string { return s[:min(len(s), 64)] }
