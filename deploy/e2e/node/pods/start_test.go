package pods

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// packetsBetweenNodes asks a server for its hostname from a pod of the other node, over both families.
func packetsBetweenNodes(t *testing.T, e *env) {
	server := e.run(t, e.newPod("server", 0, netexec(8080)))
	client := e.run(t, e.newPod("client", 1, shell("client", "sleep 1000")))
	if len(server.Status.PodIPs) != 2 {
		t.Fatalf("server has addresses %v, want one of each family", server.Status.PodIPs)
	}
	for _, ip := range server.Status.PodIPs {
		url := "http://" + net.JoinHostPort(ip.IP, "8080")
		if out := e.shell(t, client.Name, "curl -gsS -m 5 "+url+"/hostname"); out != "server" {
			t.Errorf("GET %s/hostname = %q, want server", url, out)
		}
		// The server sees the pod's own address.
		if out := e.shell(t, client.Name, "curl -gsS -m 5 "+url+"/clientip"); !sentBy(out, client) {
			t.Errorf("GET %s/clientip = %q, want one of %v", url, out, client.Status.PodIPs)
		}
	}
}

func sentBy(address string, p *corev1.Pod) bool {
	host, _, err := net.SplitHostPort(address)
	for _, ip := range p.Status.PodIPs {
		if err == nil && ip.IP == host {
			return true
		}
	}
	return false
}

// initAndSidecar checks the order of the containers, and that a sidecar ends with the last container.
func initAndSidecar(t *testing.T, e *env) {
	always := corev1.ContainerRestartPolicyAlways
	first := shell("first", "echo first >>/shared/order")
	sidecar := shell("sidecar", "echo sidecar >>/shared/order; trap 'exit 0' TERM; while :; do sleep 0.1; done")
	sidecar.RestartPolicy = &always
	second := shell("second", "echo second >>/shared/order")
	main := shell("main", "echo main >>/shared/order; cat /shared/order")
	shared := []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
	p := e.newPod("pod", 0, main)
	p.Spec.InitContainers = []corev1.Container{first, sidecar, second}
	p.Spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	p.Spec.Containers[0].VolumeMounts = shared
	for i := range p.Spec.InitContainers {
		p.Spec.InitContainers[i].VolumeMounts = shared
	}
	e.create(t, p)
	done := e.await(t, p.Name, "succeeded", isPhase(corev1.PodSucceeded))
	if got, want := e.logs(t, p.Name, "main"), "first\nsidecar\nsecond\nmain\n"; got != want {
		// The sidecar's first line may come after the next container has started.
		if lines := strings.Fields(got); len(lines) != 4 || lines[0] != "first" || lines[3] != "main" {
			t.Errorf("order of containers is %q, want %q", got, want)
		}
	}
	if s := status(done, "sidecar"); s.State.Terminated == nil {
		t.Errorf("sidecar is %s, want terminated", s.State.String())
	}
}

// unknownImage: the status of a Pod with a missing image reports it.
func unknownImage(t *testing.T, e *env) {
	const image = "example.com/unknown:1"
	e.create(t, e.newPod("pod", 0, corev1.Container{Name: "main", Image: image}))
	e.await(t, "pod", "waiting for its image", func(p *corev1.Pod) bool {
		w := status(p, "main").State.Waiting
		return w != nil && strings.Contains(w.Reason, "Pull") && strings.Contains(w.Message, image)
	})
}

// startTime measures from the write of a Pod until it is ready.
func startTime(t *testing.T, e *env) {
	var worst time.Duration
	for i := range 5 {
		p := e.newPod(fmt.Sprintf("pod-%d", i), 0, corev1.Container{Name: "main", Image: agnhost})
		begin := time.Now()
		e.run(t, p)
		worst = max(worst, time.Since(begin))
	}
	t.Logf("a pod is ready within %s", worst.Round(10*time.Millisecond))
	if limit := time.Minute; worst > limit {
		t.Errorf("a pod took %s to become ready, want at most %s", worst, limit)
	}
	list, err := e.client.CoreV1().Pods(e.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		e.delete(t, p.Name)
	}
}
