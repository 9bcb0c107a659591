package pods

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// shareDir mounts a directory of the machine at /out, and returns its path.
func shareDir(t *testing.T, p *corev1.Pod) string {
	t.Helper()
	dir := t.TempDir()
	kind := corev1.HostPathDirectory
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "out", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: &kind}}})
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].VolumeMounts = append(p.Spec.Containers[i].VolumeMounts, corev1.VolumeMount{Name: "out", MountPath: "/out"})
	}
	return dir
}

// hookAndGracePeriod: the hook, the signal, and the container's own end within the grace period.
func hookAndGracePeriod(t *testing.T, e *env) {
	c := shell("main", "trap 'echo signal >>/out/order; sleep 1; echo end >>/out/order; exit 0' TERM; echo start >>/out/order; while :; do sleep 0.1; done")
	c.Lifecycle = &corev1.Lifecycle{
		PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo hook >>/out/started"}}},
		PreStop:   &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "sleep 1; echo hook >>/out/order"}}},
	}
	p := e.newPod("pod", 0, c)
	grace := int64(20)
	p.Spec.TerminationGracePeriodSeconds = &grace
	dir := shareDir(t, p)
	e.run(t, p)
	begin := time.Now()
	e.delete(t, p.Name)
	if took := time.Since(begin); took < 2*time.Second || took >= 20*time.Second {
		t.Errorf("pod ended in %s, want the 2 s of its hook and its own end, and not its grace period", took)
	}
	for name, want := range map[string]string{"started": "hook", "order": "start hook signal end"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if got := strings.Join(strings.Fields(string(b)), " "); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
}

// killedAfterGracePeriod: a container that ignores the signal ends with its grace period.
func killedAfterGracePeriod(t *testing.T, e *env) {
	p := e.newPod("pod", 1, shell("main", "trap '' TERM; while :; do sleep 0.1; done"))
	grace := int64(2)
	p.Spec.TerminationGracePeriodSeconds = &grace
	e.run(t, p)
	begin := time.Now()
	e.delete(t, p.Name)
	if took := time.Since(begin); took < 2*time.Second || took >= 20*time.Second {
		t.Errorf("pod ended in %s, want its 2 s of grace", took)
	}
}

// exitCodes checks the status of containers that end by themselves.
func exitCodes(t *testing.T, e *env) {
	p := e.newPod("pod", 0, shell("good", "exit 0"), shell("bad", "exit 5"))
	message := shell("message", "echo -n the reason >/dev/termination-log; exit 1")
	p.Spec.Containers = append(p.Spec.Containers, message)
	e.create(t, p)
	done := e.await(t, p.Name, "failed", isPhase(corev1.PodFailed))
	for name, want := range map[string]int32{"good": 0, "bad": 5, "message": 1} {
		s := status(done, name).State.Terminated
		if s == nil || s.ExitCode != want {
			t.Errorf("container %s is %v, want exit code %d", name, s, want)
		}
	}
	if s := status(done, "message").State.Terminated; s != nil && s.Message != "the reason" {
		t.Errorf("termination message is %q", s.Message)
	}
}

// nodeEnds: SIGKILL of the second node and SIGTERM of the first end all of their pods.
func nodeEnds(t *testing.T, e *env) {
	for i, end := range []func() error{
		func() error { return e.nodes[0].Stop(20 * time.Second) },
		func() error { return e.nodes[1].Kill() },
	} {
		name := e.nodes[i].Name
		// The arguments identify the processes.
		e.run(t, e.newPod(name, i, shell("main", "sleep 1234567; : on "+name)))
		if n := processes(t, "1234567"); n == 0 {
			t.Fatalf("no process of the pod of %s is seen", name)
		}
		if err := end(); err != nil {
			t.Errorf("end %s: %v", name, err)
		}
		err := eventually(t.Context(), 5*time.Second, func() error {
			if processes(t, "1234567") > 0 {
				return errStillThere
			}
			return nil
		})
		if err != nil {
			t.Errorf("after the end of %s: processes of its pod: %v", name, err)
		}
	}
	if left, err := e.client.CoreV1().Pods(e.namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 2 {
		t.Errorf("pods are gone with their nodes, want them to stay: %v", err)
	}
}

// processes counts processes with a word in their arguments.
func processes(t *testing.T, word string) int {
	t.Helper()
	all, err := lab.Processes(word)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
