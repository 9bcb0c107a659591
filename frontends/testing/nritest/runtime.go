package nritest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

// Runtime is a container runtime, of which one process runs at a time.
type Runtime struct {
	*adaptation.Adaptation
	// Socket is that for plugins. Its connections go on to one of the Adaptation, which
	// does not close them when it stops: a process does when it ends.
	Socket string
	// End ends the process.
	End func()
}

// New returns a runtime without a process.
func New(t *testing.T) *Runtime {
	return &Runtime{Socket: filepath.Join(t.TempDir(), "nri.sock")}
}

// Start starts a process, which has pods.
func (r *Runtime) Start(t *testing.T, pods ...*api.PodSandbox) {
	t.Helper()
	report := func(ctx context.Context, send adaptation.SyncCB) error {
		_, err := send(ctx, pods, nil)
		return err
	}
	update := func(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) { return nil, nil }
	inner := filepath.Join(t.TempDir(), "nri.sock")
	var err error
	r.Adaptation, err = adaptation.New("containerd", "2.2.0", report, update,
		adaptation.WithSocketPath(inner), adaptation.WithPluginPath(t.TempDir()), adaptation.WithPluginConfigPath(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Adaptation.Start(); err != nil {
		t.Fatal(err)
	}
	disconnect := forward(t, r.Socket, inner)
	stop := r.Stop
	r.End = func() { disconnect(); stop() }
	t.Cleanup(r.End)
}

// forward connects each connection of one socket to another, until stop is called.
func forward(t *testing.T, from, to string) (stop func()) {
	t.Helper()
	if err := os.Remove(from); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", from)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("unix", to)
			if err != nil {
				_ = a.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
				wg.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					_, _ = a.Close(), b.Close()
				})
			}
			context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })
		}
	})
	return func() { _ = l.Close(); cancel(); wg.Wait() }
}

// RunPod starts a pod: it returns when its containers may start.
func (r *Runtime) RunPod(t *testing.T, p *api.PodSandbox) {
	t.Helper()
	// The plugin receives events once its synchronization has ended.
	r.BlockPluginSync().Unblock()
	if err := r.RunPodSandbox(t.Context(), &api.RunPodSandboxRequest{Pod: p}); err != nil {
		t.Error(err)
	}
}

// StopPod tells that a pod has ended.
func (r *Runtime) StopPod(t *testing.T, p *api.PodSandbox) {
	t.Helper()
	// As in RunPod.
	r.BlockPluginSync().Unblock()
	if err := r.StopPodSandbox(t.Context(), &api.StopPodSandboxRequest{Pod: p}); err != nil {
		t.Error(err)
	}
}

// Pod returns a pod with addresses.
func Pod(name string, ips ...string) *api.PodSandbox {
	return &api.PodSandbox{
		Id: "sandbox-" + name, Name: name, Namespace: "shop", Uid: "uid-" + name, Ips: ips, Pid: 1,
		Labels: map[string]string{"app": name, "io.kubernetes.pod.name": name},
	}
}
