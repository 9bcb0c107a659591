package nri

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/nri/nripb"
)

const (
	maxReport = 64 << 20
	maxID     = 256
)

// report is the runtime's report in one part or several. Runtimes report ended pods until the
// kubelet removes them, and other pods may have their addresses. A pod has ended if it has neither
// a process nor a container: some runtimes report no process, and a pod before its first container
// has a process.
type report struct {
	pods       []reportedPod
	containers map[string]bool // IDs of the pods with a container
	size       int             // of the labels
}

type reportedPod struct {
	id      string
	process bool
	object  *model.SandboxObject
}

func (r *report) add(req *nripb.SynchronizeRequest, parse func(*nripb.PodSandbox) *model.SandboxObject) error {
	for _, p := range req.GetPods() {
		o := parse(p)
		if o == nil {
			continue
		}
		for k, v := range p.GetLabels() {
			r.size += len(k) + len(v)
		}
		r.pods = append(r.pods, reportedPod{id: p.GetId(), process: p.GetPid() != 0, object: o})
	}
	if r.containers == nil {
		r.containers = make(map[string]bool)
	}
	for _, c := range req.GetContainers() {
		if id := c.GetPodSandboxId(); len(id) <= maxID {
			r.containers[id] = true
		}
	}
	switch {
	case len(r.pods) > model.MaxSandboxes || len(r.containers) > model.MaxSandboxes:
		return status.Error(codes.ResourceExhausted, fmt.Sprintf("more than %d pods", model.MaxSandboxes))
	case r.size > maxReport:
		return status.Error(codes.ResourceExhausted, fmt.Sprintf("the labels of all pods have more than %d bytes", maxReport))
	}
	return nil
}

func (r *report) running() []*model.SandboxObject {
	var out []*model.SandboxObject
	for _, p := range r.pods {
		if p.process || r.containers[p.id] {
			out = append(out, p.object)
		}
	}
	return out
}
