package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/cmd/weft/takeover"
)

// proxies returns an error if nodes cannot be moved with the DaemonSets.
func (c *cluster) proxies(ctx context.Context) (peer, weft *appsv1.DaemonSet, err error) {
	if peer, err = c.daemonSet(ctx, peerName); err != nil {
		return nil, nil, err
	}
	if weft, err = c.daemonSet(ctx, weftName); err != nil {
		return nil, nil, err
	}
	switch {
	case peer == nil:
		return nil, nil, fmt.Errorf("DaemonSet %s/%s does not exist: the proxy of these nodes cannot be chosen by a label", namespace, peerName)
	case selects(peer, takeover.Weft):
		return nil, nil, fmt.Errorf("DaemonSet %s/%s runs on all nodes, whatever their label %s: run weft migrate prepare", namespace, peerName, takeover.Label)
	case weft == nil:
		return nil, nil, fmt.Errorf("DaemonSet %s/%s does not exist: install weft with migration.enabled of the chart, or deploy/kubernetes/migration", namespace, weftName)
	case selects(weft, ""):
		return nil, nil, fmt.Errorf("DaemonSet %s/%s runs on all nodes, whatever their label %s: install it with migration.enabled of the chart", namespace, weftName, takeover.Label)
	}
	return peer, weft, nil
}

// migrate leaves the node to kube-proxy if weft does not become ready beside kube-proxy.
func (c *cluster) migrate(ctx context.Context, node string) error {
	peer, weft, err := c.proxies(ctx)
	if err != nil {
		return err
	}
	before, err := c.events(ctx, node, takeover.ReasonTookOver)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := c.label(ctx, node, takeover.Beside); err != nil {
		return err
	}
	if err := c.await(ctx, func(ctx context.Context) error { return c.runs(ctx, weft, node) }); err != nil {
		// The label is also removed after an interrupt by the user.
		back := c.label(context.WithoutCancel(ctx), node, "")
		return errors.Join(fmt.Errorf("node %s stays kube-proxy's: weft is not ready beside it: %w", node, err), back)
	}
	c.say("%s: weft's rules are in force beside those of kube-proxy", node)
	if err := c.label(ctx, node, takeover.Weft); err != nil {
		return err
	}
	if err := c.await(ctx, func(ctx context.Context) error { return c.gone(ctx, peer, node) }); err != nil {
		return fmt.Errorf("node %s has both proxies: %w", node, err)
	}
	c.say("%s: kube-proxy has ended", node)
	if err := c.await(ctx, func(ctx context.Context) error { return c.said(ctx, node, takeover.ReasonTookOver, before) }); err != nil {
		return fmt.Errorf("node %s has weft alone, but the rules of kube-proxy may still be there: weft get status on the node says why: %w", node, err)
	}
	c.say("%s: the rules of kube-proxy are removed. It took %v", node, time.Since(start).Round(time.Second))
	return nil
}

func (c *cluster) rollback(ctx context.Context, node string) error {
	peer, weft, err := c.proxies(ctx)
	if err != nil {
		return err
	}
	before, err := c.events(ctx, node, takeover.ReasonHandedOver)
	if err != nil {
		return err
	}
	pods, err := c.pods(ctx, weft, node)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := c.label(ctx, node, ""); err != nil {
		return err
	}
	if err := c.await(ctx, func(ctx context.Context) error { return c.runs(ctx, peer, node) }); err != nil {
		return fmt.Errorf("node %s does not have kube-proxy again: %w", node, err)
	}
	c.say("%s: kube-proxy runs", node)
	if len(pods) == 0 {
		c.say("%s: weft did not run", node)
		return nil
	}
	if err := c.await(ctx, func(ctx context.Context) error { return c.gone(ctx, weft, node) }); err != nil {
		return fmt.Errorf("node %s has both proxies: %w", node, err)
	}
	if err := c.await(ctx, func(ctx context.Context) error { return c.said(ctx, node, takeover.ReasonHandedOver, before) }); err != nil {
		return fmt.Errorf("node %s has kube-proxy alone, but the rules of weft may still be there: run weft cleanup on the node: %w", node, err)
	}
	c.say("%s: the rules of kube-proxy are in force, and those of weft are removed. It took %v", node, time.Since(start).Round(time.Second))
	return nil
}

func (c *cluster) runs(ctx context.Context, set *appsv1.DaemonSet, node string) error {
	pods, err := c.pods(ctx, set, node)
	if err != nil {
		return err
	}
	why := fmt.Errorf("DaemonSet %s has no pod there", set.Name)
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp != nil {
			continue
		}
		if why = notReady(p); why == nil {
			return nil
		}
	}
	return why
}

func notReady(p *corev1.Pod) error {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
			return nil
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil {
			return fmt.Errorf("pod %s waits: %s: %s", p.Name, w.Reason, w.Message)
		}
	}
	return fmt.Errorf("pod %s is %s and not ready", p.Name, p.Status.Phase)
}

func (c *cluster) gone(ctx context.Context, set *appsv1.DaemonSet, node string) error {
	pods, err := c.pods(ctx, set, node)
	if err != nil {
		return err
	}
	if len(pods) > 0 {
		return fmt.Errorf("pod %s has not ended", pods[0].Name)
	}
	return nil
}

// said returns an error unless an event about a node is new since before, or has a higher count.
func (c *cluster) said(ctx context.Context, node, reason string, before map[string]int32) error {
	now, err := c.events(ctx, node, reason)
	if err != nil {
		return err
	}
	for name, count := range now {
		if earlier, ok := before[name]; !ok || count > earlier {
			return nil
		}
	}
	return fmt.Errorf("there is no event %s", reason)
}
