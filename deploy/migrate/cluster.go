package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/weft-proxy/weft/cmd/weft/takeover"
)

const (
	namespace = metav1.NamespaceSystem
	peerName  = "kube-proxy"
	weftName  = "weft"
)

const poll = 500 * time.Millisecond

type cluster struct {
	client kubernetes.Interface
	// per step of a node
	timeout time.Duration
	say     func(format string, args ...any)
}

// daemonSet returns nil if the DaemonSet does not exist.
func (c *cluster) daemonSet(ctx context.Context, name string) (*appsv1.DaemonSet, error) {
	set, err := c.client.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a missing DaemonSet is not an error
	}
	if err != nil {
		return nil, fmt.Errorf("get DaemonSet %s/%s: %w", namespace, name, err)
	}
	return set, nil
}

// selects reports whether a DaemonSet's node affinity allows a label value, "" for a node without the
// label.
func selects(set *appsv1.DaemonSet, value string) bool {
	terms := required(&set.Spec.Template.Spec)
	if terms == nil {
		return true
	}
	return slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return r.Key == takeover.Label && !matches(r, value) })
	})
}

// required returns the terms of the node affinity, which are alternatives.
func required(pod *corev1.PodSpec) []corev1.NodeSelectorTerm {
	if pod.Affinity == nil || pod.Affinity.NodeAffinity == nil || pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// matches reports whether a requirement admits the value, "" for a node without the label.
func matches(r corev1.NodeSelectorRequirement, value string) bool {
	node := labels.Set{}
	if value != "" {
		node[takeover.Label] = value
	}
	selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: r.Values},
	}})
	// A numeric comparison is an error, because the label's values are not numbers.
	return err == nil && selector.Matches(node)
}

// label sets a node's label. An empty value removes it.
func (c *cluster) label(ctx context.Context, node, value string) error {
	var to any
	said := takeover.Label + "-"
	if value != "" {
		to, said = value, takeover.Label+"="+value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{takeover.Label: to}}})
	if err != nil {
		return fmt.Errorf("label node %s: %w", node, err)
	}
	if _, err := c.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "weft-migrate"}); err != nil {
		return fmt.Errorf("label node %s %s: %w", node, said, err)
	}
	c.say("%s: label %s", node, said)
	return nil
}

func (c *cluster) pods(ctx context.Context, set *appsv1.DaemonSet, node string) ([]corev1.Pod, error) {
	list, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, fmt.Errorf("list pods of node %s: %w", node, err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, set) }), nil
}

// await returns the last error of f after the timeout.
func (c *cluster) await(ctx context.Context, f func(context.Context) error) error {
	start := time.Now()
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, c.timeout, true, func(context.Context) (bool, error) {
		last = f(ctx)
		return last == nil, nil
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), last)
	case err != nil:
		return fmt.Errorf("after %v: %w", time.Since(start).Round(time.Second), last)
	}
	return nil
}

// events returns the counts of events about a node by their names.
func (c *cluster) events(ctx context.Context, node, reason string) (map[string]int32, error) {
	list, err := c.client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Node,involvedObject.name=" + node + ",reason=" + reason,
	})
	if err != nil {
		return nil, fmt.Errorf("list events of node %s: %w", node, err)
	}
	counts := make(map[string]int32, len(list.Items))
	for _, e := range list.Items {
		counts[e.Name] = e.Count
		if e.Series != nil {
			counts[e.Name] = e.Series.Count
		}
	}
	return counts, nil
}
