package scale

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// beat is the period of each node's status and lease.
const beat = 10 * time.Second

// heartbeats writes the idle kubelets' updates of all nodes, evenly distributed over d.
func (a *api) heartbeats(ctx context.Context, d time.Duration) error {
	list, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	each := beat / time.Duration(len(list.Items))
	start := time.Now()
	for i := 0; time.Since(start) < d; i++ {
		if err := a.heartbeat(ctx, &list.Items[i%len(list.Items)]); err != nil {
			return err
		}
		if err := pause(ctx, time.Until(start.Add(time.Duration(i+1)*each))); err != nil {
			return err
		}
	}
	return nil
}

func (a *api) heartbeat(ctx context.Context, n *corev1.Node) error {
	for i := range n.Status.Conditions {
		n.Status.Conditions[i].LastHeartbeatTime = metav1.Now()
	}
	o := n.DeepCopy()
	o.ResourceVersion = ""
	if _, err := a.client.CoreV1().Nodes().UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write status of node %s: %w", n.Name, err)
	}
	leases := a.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read lease of node %s: %w", n.Name, err)
	}
	now := metav1.NowMicro()
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &n.Name, RenewTime: &now}
	if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write lease of node %s: %w", n.Name, err)
	}
	return nil
}
