package nri_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

// requestTimeout is the runtime's; the plugin waits for half of it at most.
const requestTimeout = 20 * time.Second

func TestMain(m *testing.M) {
	adaptation.SetPluginRequestTimeout(requestTimeout)
	os.Exit(m.Run())
}

// runtime is the runtime's side of NRI, as in containerd.
type runtime struct {
	*adaptation.Adaptation
	// socket is that for plugins. Its connections go on to one of the Adaptation, which
	// does not close them when it stops: a process does when it ends.
	socket string
	stop   func()
}

func newRuntime(t *testing.T) *runtime {
	return &runtime{socket: filepath.Join(t.TempDir(), "nri.sock")}
}

// start starts a process of the runtime, which has pods.
func (r *runtime) start(t *testing.T, pods ...*api.PodSandbox) {
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
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	disconnect := forward(t, r.socket, inner)
	stop := r.Stop
	r.stop = func() { disconnect(); stop() }
	t.Cleanup(r.stop)
}

// forward connects each connection of one socket to another, until the function that it
// returns is called.
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

// run starts a pod: it returns when its containers may start.
func (r *runtime) run(t *testing.T, p *api.PodSandbox) {
	t.Helper()
	// The plugin receives events once its synchronization has ended.
	r.BlockPluginSync().Unblock()
	if err := r.RunPodSandbox(t.Context(), &api.RunPodSandboxRequest{Pod: p}); err != nil {
		t.Error(err)
	}
}

// pod returns a pod with addresses.
func pod(name string, ips ...string) *api.PodSandbox {
	return &api.PodSandbox{
		Id: "sandbox-" + name, Name: name, Namespace: "shop", Uid: "uid-" + name, Ips: ips, Pid: 1,
		Labels: map[string]string{"app": name, "io.kubernetes.pod.name": name},
	}
}
