package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// replica is a Pod of the API for a pod of the lab. Its methods act as the kubelet.
type replica struct {
	*lab.Pod
	e *env
	// the name in the API
	object string
}

const appLabel = "app"

// selecting makes a Service select an app.
func selecting(app string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Selector = map[string]string{appLabel: app} }
}

// schedule creates the Pod object of a lab pod, on its node, with the ports of webService. It is not
// ready before report.
func (e *env) schedule(ctx context.Context, app string, p *lab.Pod, ports map[string]int32) (*replica, error) {
	no := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: app + "-" + p.Name(), Namespace: e.namespace, Labels: map[string]string{appLabel: app}},
		Spec: corev1.PodSpec{
			NodeName: p.Node().Name(), AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{Name: "server", Image: "server"}},
		},
	}
	for name, number := range ports {
		for suffix, protocol := range map[string]corev1.Protocol{"": corev1.ProtocolTCP, "-udp": corev1.ProtocolUDP} {
			c := &pod.Spec.Containers[0]
			c.Ports = append(c.Ports, corev1.ContainerPort{Name: name + suffix, ContainerPort: number, Protocol: protocol})
		}
	}
	if _, err := e.cluster.Client().CoreV1().Pods(e.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	return &replica{Pod: p, e: e, object: pod.Name}, nil
}

func webContainerPorts() map[string]int32 { return map[string]int32{"http": 8080, "admin": 9090} }

func (r *replica) report(ctx context.Context, ready bool) error {
	is := map[bool]corev1.ConditionStatus{false: corev1.ConditionFalse, true: corev1.ConditionTrue}[ready]
	status := corev1.PodStatus{
		Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.ContainersReady, Status: is}, {Type: corev1.PodReady, Status: is, LastTransitionTime: metav1.Now()},
		},
		HostIP: r.Node().Addresses.V4.String(), PodIP: r.Addresses.V4.String(),
	}
	for _, a := range r.Node().Addresses.All() {
		status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: a.String()})
	}
	for _, a := range r.Addresses.All() {
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: a.String()})
	}
	b, err := json.Marshal(map[string]any{"status": status})
	if err == nil {
		_, err = r.pods().Patch(ctx, r.object, types.MergePatchType, b, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		return fmt.Errorf("report pod %s ready=%v: %w", r.object, ready, err)
	}
	return nil
}

// The Pod serves until the end of its grace period.
func (r *replica) terminate(ctx context.Context, grace time.Duration) error {
	seconds := int64(grace.Seconds())
	if err := r.pods().Delete(ctx, r.object, metav1.DeleteOptions{GracePeriodSeconds: &seconds}); err != nil {
		return fmt.Errorf("delete pod %s: %w", r.object, err)
	}
	return nil
}

// forget reports that the containers have ended, and removes the object. The lab's pod keeps running.
func (r *replica) forget(ctx context.Context) error {
	if err := r.report(ctx, false); err != nil {
		return err
	}
	return r.terminate(ctx, 0)
}

func (r *replica) pods() typedcorev1.PodInterface {
	return r.e.cluster.Client().CoreV1().Pods(r.e.namespace)
}
