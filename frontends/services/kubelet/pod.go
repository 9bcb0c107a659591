package kubelet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source/wire"
)

// Field numbers in generated.proto of k8s.io/api/core/v1 and k8s.io/apimachinery.
const (
	podMeta, podStatus                              = 1, 3
	metaName, metaNamespace, metaUID, metaDeletion  = 1, 3, 5, 9
	statusPhase, statusConditions                   = 1, 2
	conditionType, conditionStatus, conditionReason = 1, 2, 5
)

const (
	notReadyReason = "ContainersNotReady"
	// of a name, namespace or UID, in bytes
	maxName = 253
)

type condition struct{ kind, status, reason string }

// pod has the used fields of a v1.Pod. The Pods API has no field masks.
type pod struct {
	name, namespace, uid, phase string
	deleted                     bool
	ready, containersReady      condition
}

// parsePod decodes a v1.Pod in protobuf.
func parsePod(message []byte) (model.PodID, model.PodState, error) {
	var p pod
	err := wire.Fields(message, func(f wire.Field) error {
		switch f.Number {
		case podMeta:
			return f.Message(p.meta)
		case podStatus:
			return f.Message(p.status)
		}
		return nil
	})
	if err != nil {
		return model.PodID{}, 0, fmt.Errorf("decode pod: %w", err)
	}
	for _, s := range []string{p.name, p.namespace, p.uid} {
		if s == "" || len(s) > maxName {
			return model.PodID{}, 0, fmt.Errorf("pod %.*q of namespace %.*q with UID %.*q: want 1 to %d bytes each", maxName, p.name, maxName, p.namespace, maxName, p.uid, maxName)
		}
	}
	return model.PodID{Key: model.Key{Namespace: p.namespace, Name: p.name}, UID: types.UID(p.uid)}, p.state(), nil
}

func (p *pod) meta(f wire.Field) error {
	switch f.Number {
	case metaName:
		return f.Text(&p.name)
	case metaNamespace:
		return f.Text(&p.namespace)
	case metaUID:
		return f.Text(&p.uid)
	case metaDeletion:
		p.deleted = true
	}
	return nil
}

func (p *pod) status(f wire.Field) error {
	switch f.Number {
	case statusPhase:
		return f.Text(&p.phase)
	case statusConditions:
		var c condition
		err := f.Message(c.field)
		switch corev1.PodConditionType(c.kind) {
		case corev1.PodReady:
			p.ready = c
		case corev1.ContainersReady:
			p.containersReady = c
		default:
		}
		return err
	}
	return nil
}

func (c *condition) field(f wire.Field) error {
	switch f.Number {
	case conditionType:
		return f.Text(&c.kind)
	case conditionStatus:
		return f.Text(&c.status)
	case conditionReason:
		return f.Text(&c.reason)
	}
	return nil
}

func (p *pod) state() model.PodState {
	const yes = string(corev1.ConditionTrue)
	// A kubelet that has not looked at the pod since its start replaces Ready alone.
	serving := p.ready.status == yes || p.ready.reason == notReadyReason && p.containersReady.status == yes
	switch phase := corev1.PodPhase(p.phase); {
	case phase == corev1.PodSucceeded || phase == corev1.PodFailed:
		return model.PodGone
	case serving && p.deleted:
		return model.PodServing
	case serving:
		return model.PodReady
	case p.deleted:
		return model.PodStopping
	default:
		return model.PodNotReady
	}
}
