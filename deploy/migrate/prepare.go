package migrate

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/cmd/weft/takeover"
)

type patch map[string]any

// affinity returns the patch to keep kube-proxy off weft's nodes, nil if already applied. It keeps other
// requirements.
func (c *cluster) affinity(ctx context.Context) (patch, error) {
	peer, err := c.daemonSet(ctx, peerName)
	switch {
	case err != nil:
		return nil, err
	case peer == nil:
		return nil, fmt.Errorf("DaemonSet %s/%s does not exist: there is nothing to prepare", namespace, peerName)
	case !selects(peer, takeover.Weft):
		return nil, nil
	}
	affinity := &corev1.Affinity{}
	if now := peer.Spec.Template.Spec.Affinity; now != nil {
		affinity = now.DeepCopy()
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	node := affinity.NodeAffinity
	if node.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		node.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, corev1.NodeSelectorRequirement{
			Key: takeover.Label, Operator: corev1.NodeSelectorOpNotIn, Values: []string{takeover.Weft},
		})
	}
	spec := map[string]any{"affinity": affinity}
	return patch{"spec": map[string]any{"template": map[string]any{"spec": spec}}}, nil
}

// apply patches the DaemonSet, which restarts kube-proxy's pods one after the other.
func (c *cluster) apply(ctx context.Context, p patch) error {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("patch DaemonSet %s/%s: %w", namespace, peerName, err)
	}
	if _, err := c.client.AppsV1().DaemonSets(namespace).Patch(ctx, peerName, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "weft-migrate"}); err != nil {
		return fmt.Errorf("patch DaemonSet %s/%s: %w", namespace, peerName, err)
	}
	return nil
}
