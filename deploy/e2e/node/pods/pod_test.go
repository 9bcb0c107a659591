package pods

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
	busybox = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"
	soon    = 60 * time.Second
)

func shell(name, script string) corev1.Container {
	return corev1.Container{Name: name, Image: busybox, Command: []string{"sh", "-c", script}}
}

// netexec serves HTTP on a port, with a readiness probe.
func netexec(port int) corev1.Container {
	probe := everySecond(gets("/healthz", port))
	probe.FailureThreshold = 3
	return corev1.Container{
		Name: "netexec", Image: agnhost, ReadinessProbe: probe,
		Args: []string{"netexec", "--http-port=" + strconv.Itoa(port), "--udp-port=" + strconv.Itoa(port)},
	}
}

// node counts from 0. The Pod ends quickly when it is deleted.
func (e *env) newPod(name string, node int, containers ...corev1.Container) *corev1.Pod {
	grace := int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.namespace},
		Spec: corev1.PodSpec{
			NodeName: e.nodes[node].Name, Containers: containers,
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
		},
	}
}

func (e *env) create(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if _, err := e.client.CoreV1().Pods(e.namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create pod %s: %v", p.Name, err)
	}
}

// run returns the ready Pod.
func (e *env) run(t *testing.T, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	e.create(t, p)
	return e.await(t, p.Name, "ready", isReady)
}

func (e *env) await(t *testing.T, name, what string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var p *corev1.Pod
	err := eventually(t.Context(), soon, func() (err error) {
		p, err = e.client.CoreV1().Pods(e.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && !wanted(p) {
			err = errors.New(describe(p))
		}
		return err
	})
	if err != nil {
		t.Fatalf("wait until pod %s is %s: %v", name, what, err)
	}
	return p
}

func describe(p *corev1.Pod) string {
	s := fmt.Sprintf("phase %s, message %q", p.Status.Phase, p.Status.Message)
	for _, c := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		s += fmt.Sprintf("; container %s: ready %t, restarts %d, %s", c.Name, c.Ready, c.RestartCount, c.State.String())
	}
	return s
}

// delete returns after the node has ended the Pod.
func (e *env) delete(t *testing.T, name string) {
	t.Helper()
	if err := e.client.CoreV1().Pods(e.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete pod %s: %v", name, err)
	}
	err := eventually(t.Context(), soon, func() error {
		_, err := e.client.CoreV1().Pods(e.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
	if err != nil {
		t.Fatalf("wait for the end of pod %s: %v", name, err)
	}
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func isPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Status.Phase == phase }
}

func status(p *corev1.Pod, container string) corev1.ContainerStatus {
	for _, c := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		if c.Name == container {
			return c
		}
	}
	return corev1.ContainerStatus{Name: container}
}
