package runtime

import (
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func BenchmarkExecSync(b *testing.B) {
	_, c := serve(b)
	id := c.start(b, c.pod(b, &cri.PodSandboxConfig{Hostname: "web"}), "exec sleep 1000")
	for b.Loop() {
		if _, err := c.ExecSync(c.ctx, &cri.ExecSyncRequest{ContainerId: id, Cmd: []string{"true"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPod is the start and the end of a pod with a container.
func BenchmarkPod(b *testing.B) {
	_, c := serve(b)
	for b.Loop() {
		pod := c.pod(b, &cri.PodSandboxConfig{Hostname: "web"})
		c.start(b, pod, "exec sleep 1000")
		if _, err := c.RemovePodSandbox(c.ctx, &cri.RemovePodSandboxRequest{PodSandboxId: pod}); err != nil {
			b.Fatal(err)
		}
	}
}
