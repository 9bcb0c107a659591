package runtime

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const patience = 3 * time.Minute

type client struct {
	cri.RuntimeServiceClient
	ctx context.Context
	dir string
}

// The runtime may still be starting.
func dial(t testing.TB, socket string) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &client{RuntimeServiceClient: cri.NewRuntimeServiceClient(conn), ctx: ctx, dir: t.TempDir()}
	config := &cri.RuntimeConfig{NetworkConfig: &cri.NetworkConfig{PodCidr: "10.244.3.0/24,fd00:10:244:3::/64"}}
	if _, err := c.UpdateRuntimeConfig(ctx, &cri.UpdateRuntimeConfigRequest{RuntimeConfig: config}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	return c
}

// setUpNode makes the test's network namespace a node: the runtime listens on its loopback, and pods
// reach each other through it.
func setUpNode(t testing.TB) {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err := errors.Join(err, setSysctls(map[string]string{"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"})); err != nil {
		t.Fatal(err)
	}
}

// serve runs a runtime in this process until the end of the test.
func serve(t testing.TB) (*Runtime, *client) {
	t.Helper()
	bin, err := filepath.Abs(programs.Bin)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r, err := New(Config{Dir: dir, Programs: bin})
	if err != nil {
		t.Fatal(err)
	}
	setUpNode(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	socket := filepath.Join(dir, "s")
	go func() { ended <- r.Serve(ctx, socket) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	return r, dial(t, socket)
}

func (c *client) pod(t testing.TB, config *cri.PodSandboxConfig) string {
	t.Helper()
	config.LogDirectory = c.dir
	s, err := c.RunPodSandbox(c.ctx, &cri.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	return s.GetPodSandboxId()
}

// The container runs a shell script.
func (c *client) create(t testing.TB, pod, script string, mounts ...*cri.Mount) string {
	t.Helper()
	return c.configure(t, pod, script, func(config *cri.ContainerConfig) { config.Mounts = mounts })
}

// change edits the container's configuration.
func (c *client) configure(t testing.TB, pod, script string, change func(*cri.ContainerConfig)) string {
	t.Helper()
	config := &cri.ContainerConfig{
		Image: &cri.ImageSpec{Image: "busybox:1.36"}, Command: []string{"sh", "-c", script},
		Labels: map[string]string{"pod": pod}, LogPath: "log",
	}
	change(config)
	created, err := c.CreateContainer(c.ctx, &cri.CreateContainerRequest{
		PodSandboxId: pod, SandboxConfig: &cri.PodSandboxConfig{LogDirectory: c.dir}, Config: config,
	})
	if err != nil {
		t.Fatal(err)
	}
	return created.GetContainerId()
}

func (c *client) start(t testing.TB, pod, script string, mounts ...*cri.Mount) string {
	t.Helper()
	id := c.create(t, pod, script, mounts...)
	c.begin(t, id)
	return id
}

func (c *client) begin(t testing.TB, id string) {
	t.Helper()
	if _, err := c.StartContainer(c.ctx, &cri.StartContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
}

// timeout is in seconds, zero for none.
func (c *client) execute(id, script string, timeout int64) (*cri.ExecSyncResponse, error) {
	return c.ExecSync(c.ctx, &cri.ExecSyncRequest{ContainerId: id, Cmd: []string{"sh", "-c", script}, Timeout: timeout})
}

func (c *client) output(t testing.TB, id, script string) string {
	t.Helper()
	r, err := c.execute(id, script, 0)
	if err != nil || r.GetExitCode() != 0 {
		t.Fatalf("%s: exit status %d, %v: %s", script, r.GetExitCode(), err, r.GetStderr())
	}
	return string(r.GetStdout())
}

func (c *client) status(t testing.TB, id string) *cri.ContainerStatus {
	t.Helper()
	r, err := c.ContainerStatus(c.ctx, &cri.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetStatus()
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func podLinks(t testing.TB) []string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range all {
		if l.Name != "lo" {
			names = append(names, l.Name)
		}
	}
	slices.Sort(names)
	return names
}
