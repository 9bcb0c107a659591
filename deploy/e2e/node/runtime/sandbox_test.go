package runtime

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func answer(t *testing.T, r *Runtime, pod, text string) {
	t.Helper()
	s, err := r.findSandbox(pod)
	if err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	if err := s.namespaces.inNetwork(func() (err error) {
		listener, err = net.Listen("tcp", "[::]:80")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	server := &http.Server{
		ReadHeaderTimeout: patience,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }),
	}
	go func() { _ = server.Serve(listener) }() // until the test ends
}

func TestNetworkOfPods(t *testing.T) {
	r, c := serve(t)
	server := c.pod(t, &cri.PodSandboxConfig{
		Hostname: "server", PortMappings: []*cri.PortMapping{{Protocol: cri.Protocol_TCP, ContainerPort: 80, HostPort: 8080}},
	})
	answer(t, r, server, "hello")
	s, err := c.PodSandboxStatus(c.ctx, &cri.PodSandboxStatusRequest{PodSandboxId: server})
	if err != nil {
		t.Fatal(err)
	}
	network := s.GetStatus().GetNetwork()
	if network.GetIp() == "" || len(network.GetAdditionalIps()) != 1 {
		t.Fatalf("network of the pod is %v, want an address of each family", network)
	}
	// The table with host ports has an owner, so that it survives a flush.
	if out, err := exec.Command("nft", "flush", "ruleset").CombinedOutput(); err != nil {
		t.Fatalf("flush ruleset: %v: %s", err, out)
	}
	other := c.start(t, c.pod(t, &cri.PodSandboxConfig{Hostname: "client"}), "exec sleep 1000")
	for _, url := range []string{
		"http://" + network.GetIp(), "http://[" + network.GetAdditionalIps()[0].GetIp() + "]", "http://10.244.3.1:8080",
	} {
		if got := c.output(t, other, "curl -gsS --max-time 10 "+url); got != "hello" {
			t.Errorf("curl %s: %q", url, got)
		}
	}
	if len(podLinks(t)) != 2 {
		t.Errorf("links are %v, want one for each pod", podLinks(t))
	}
	if _, err := c.StopPodSandbox(c.ctx, &cri.StopPodSandboxRequest{PodSandboxId: server}); err != nil {
		t.Fatal(err)
	}
	if r, err := c.execute(other, "curl -sS --max-time 10 http://10.244.3.1:8080", 0); err != nil || r.GetExitCode() == 0 {
		t.Errorf("the host port of a pod that has ended answers: %v, %v", r, err)
	}
	if len(podLinks(t)) != 1 {
		t.Errorf("links are %v, want one for the other pod", podLinks(t))
	}
}

// A pod that cannot get its host port leaves no rules, and other pods get theirs.
func TestPodWithWrongHostPort(t *testing.T) {
	r, c := serve(t)
	wrong := &cri.PodSandboxConfig{Hostname: "wrong", PortMappings: []*cri.PortMapping{{ContainerPort: 80, HostPort: 70000}}}
	if _, err := c.RunPodSandbox(c.ctx, &cri.RunPodSandboxRequest{Config: wrong}); err == nil || !strings.Contains(err.Error(), "70000") {
		t.Errorf("RunPodSandbox with host port 70000: %v, want an error that names it", err)
	}
	if list, err := c.ListPodSandbox(c.ctx, &cri.ListPodSandboxRequest{}); err != nil || len(list.GetItems()) > 0 || len(podLinks(t)) > 0 {
		t.Errorf("ListPodSandbox = %v, %v, links %v; want none", list, err, podLinks(t))
	}
	pod := c.pod(t, &cri.PodSandboxConfig{Hostname: "web", PortMappings: []*cri.PortMapping{{ContainerPort: 80, HostPort: 8080}}})
	answer(t, r, pod, "hello")
	client := c.start(t, c.pod(t, &cri.PodSandboxConfig{Hostname: "client"}), "exec sleep 1000")
	if got := c.output(t, client, "curl -sS --max-time 10 http://10.244.3.1:8080"); got != "hello" {
		t.Errorf("the host port of the next pod answers %q", got)
	}
}

func TestSharedProcessNamespaceIsRejected(t *testing.T) {
	_, c := serve(t)
	_, err := c.RunPodSandbox(c.ctx, &cri.RunPodSandboxRequest{Config: &cri.PodSandboxConfig{Linux: &cri.LinuxPodSandboxConfig{
		SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{Pid: cri.NamespaceMode_POD}},
	}}})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("RunPodSandbox = %v, want an error", err)
	}
}

func TestPodOnNetworkOfNode(t *testing.T) {
	_, c := serve(t)
	id := c.start(t, c.pod(t, &cri.PodSandboxConfig{Linux: &cri.LinuxPodSandboxConfig{SecurityContext: &cri.LinuxSandboxSecurityContext{
		NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER},
	}}}), "exec sleep 1000")
	want, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(c.output(t, id, "readlink /proc/self/ns/net")); got != want {
		t.Errorf("network namespace of the container is %s, want the node's %s", got, want)
	}
}

// When the runtime is killed, the kernel ends containers, commands in them, namespaces and links.
func TestKilledRuntimeLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	bin, err := filepath.Abs(programs.Bin)
	if err != nil {
		t.Fatal(err)
	}
	setUpNode(t)
	cmd := exec.Command("/proc/self/exe", "runtime", dir, bin, filepath.Join(dir, "s"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := dial(t, filepath.Join(dir, "s"))
	// All processes hold the FIFO open: its end is theirs.
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	pod := c.pod(t, &cri.PodSandboxConfig{Hostname: "web"})
	const script = "exec 9>/fifo; echo started >&9; sleep 1000"
	id := c.start(t, pod, script, &cri.Mount{HostPath: fifo, ContainerPath: "/fifo"})
	go func() { _, _ = c.execute(id, script, 0) }() // until the runtime is killed
	if err := end.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var started [2 * len("started\n")]byte
	eventually(t, "both processes start", func() bool { // empty before a process has opened the FIFO
		n, _ := io.ReadFull(end, started[:1])
		return n == 1
	})
	if _, err := io.ReadFull(end, started[1:]); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if rest, err := io.ReadAll(end); err != nil || len(rest) > 0 {
		t.Errorf("processes go on: %q, %v", rest, err)
	}
	eventually(t, "the link of the pod goes", func() bool { return len(podLinks(t)) == 0 })
}
