package pods

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// everySecond returns a probe that fails at its first failure.
func everySecond(h corev1.ProbeHandler) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: h, PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 5}
}

// readinessOfEachKind starts pods with a successful and a failing readiness probe of each kind.
func readinessOfEachKind(t *testing.T, e *env) {
	grpc := corev1.Container{Name: "netexec", Image: agnhost, Args: []string{"grpc-health-checking", "--port=5000"}}
	kinds := []struct {
		name      string
		container corev1.Container
		good, bad corev1.ProbeHandler
	}{
		{"exec", netexec(8080), executes("true"), executes("false")},
		{"http", netexec(8080), gets("/healthz", 8080), gets("/healthz", 8082)},
		{"tcp", netexec(8080), connects(8080), connects(8083)},
		{"grpc", grpc, checks(5000), checks(5001)},
	}
	for i, k := range kinds {
		k.container.ReadinessProbe = everySecond(k.good)
		e.create(t, e.newPod(k.name+"-good", i%2, k.container))
		k.container.ReadinessProbe = everySecond(k.bad)
		e.create(t, e.newPod(k.name+"-bad", i%2, k.container))
	}
	for _, k := range kinds {
		e.await(t, k.name+"-good", "ready", isReady)
		p := e.await(t, k.name+"-bad", "running", isPhase(corev1.PodRunning))
		if isReady(p) {
			t.Errorf("pod with a failing %s probe is ready", k.name)
		}
	}
	// Each failing probe is reported.
	for _, k := range kinds {
		e.awaitEvent(t, k.name+"-bad", "Unhealthy")
	}
}

func executes(command ...string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}
}

func gets(path string, port int) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(port)}}
}

func connects(port int) corev1.ProbeHandler {
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(port)}}
}

func checks(port int32) corev1.ProbeHandler {
	return corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port}}
}

func (e *env) awaitEvent(t *testing.T, pod, reason string) {
	t.Helper()
	err := eventually(t.Context(), soon, func() error {
		selector := "involvedObject.name=" + pod + ",reason=" + reason
		events, err := e.client.CoreV1().Events(e.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err == nil && len(events.Items) == 0 {
			err = errNoEvent
		}
		return err
	})
	if err != nil {
		t.Errorf("wait for event %s of pod %s: %v", reason, pod, err)
	}
}

// livenessRestarts removes the file that a liveness probe needs; the replacing container has the file
// again.
func livenessRestarts(t *testing.T, e *env) {
	c := shell("main", "touch /alive; trap 'exit 3' TERM; while :; do sleep 0.1; done")
	c.LivenessProbe = everySecond(executes("test", "-f", "/alive"))
	c.LivenessProbe.InitialDelaySeconds = 1
	p := e.newPod("pod", 1, c)
	p.Spec.RestartPolicy = corev1.RestartPolicyAlways
	e.run(t, p)
	e.shell(t, p.Name, "rm /alive")
	restarted := e.await(t, p.Name, "restarted", func(p *corev1.Pod) bool {
		s := status(p, "main")
		return s.RestartCount == 1 && s.State.Running != nil
	})
	if last := status(restarted, "main").LastTerminationState.Terminated; last == nil || last.ExitCode != 3 {
		t.Errorf("last state of the container is %v, want exit code 3", last)
	}
}

// readinessGate: a Pod is ready only if its named condition is true.
func readinessGate(t *testing.T, e *env) {
	const gate = "example.com/gate"
	p := e.newPod("pod", 0, shell("main", "sleep 1000"))
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
	e.create(t, p)
	running := e.await(t, p.Name, "running", func(p *corev1.Pod) bool { return status(p, "main").Ready })
	if isReady(running) {
		t.Fatal("pod is ready before its gate")
	}
	set := func(s corev1.ConditionStatus) {
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []map[string]any{{"type": gate, "status": s}}}})
		if err == nil {
			_, err = e.client.CoreV1().Pods(e.namespace).Patch(t.Context(), p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		if err != nil {
			t.Fatalf("set readiness gate: %v", err)
		}
	}
	set(corev1.ConditionTrue)
	e.await(t, p.Name, "ready", isReady)
	set(corev1.ConditionFalse)
	e.await(t, p.Name, "not ready", func(p *corev1.Pod) bool { return !isReady(p) })
}
