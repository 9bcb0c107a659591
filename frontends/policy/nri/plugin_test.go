package nri_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/nri"
)

// TestPlugin follows a runtime from its first report to the end of a pod.
func TestPlugin(t *testing.T) {
	rt, l := started(t, time.Minute, pod("a", "10.0.0.1"), pod("host"))
	l.expect(t, "a 10.0.0.1")

	rt.RunPod(t, pod("b", "10.0.0.2", "fd00::2"))
	l.expect(t, "a 10.0.0.1", "b 10.0.0.2 fd00::2")
	rt.RunPod(t, pod("host2"))
	l.expect(t, "a 10.0.0.1", "b 10.0.0.2 fd00::2")
	rt.StopPod(t, pod("a"))
	l.expect(t, "b 10.0.0.2 fd00::2")
	for range 2 { // Removed before it is stopped, and twice.
		if err := rt.RemovePodSandbox(t.Context(), &api.RemovePodSandboxRequest{Pod: pod("b")}); err != nil {
			t.Error(err)
		}
	}
	l.expect(t)
}

// TestRestartOfRuntime keeps what the runtime reported until the next one reports its pods.
func TestRestartOfRuntime(t *testing.T) {
	rt, l := started(t, time.Minute, pod("a", "10.0.0.1"), pod("b", "10.0.0.2"))
	rt.End()
	l.logs.await(t, "no connection to the container runtime")
	l.expect(t, "a 10.0.0.1", "b 10.0.0.2")
	rt.Start(t, pod("b", "10.0.0.2"), pod("c", "10.0.0.3"))
	l.await(t, "b 10.0.0.2", "c 10.0.0.3")
	rt.RunPod(t, pod("d", "10.0.0.4"))
	l.expect(t, "b 10.0.0.2", "c 10.0.0.3", "d 10.0.0.4")
}

// TestWait answers RunPodSandbox after the commit, or after a while without one.
func TestWait(t *testing.T) {
	rt, l := started(t, 100*time.Millisecond)
	l.hold()
	began := time.Now()
	rt.RunPod(t, pod("a", "10.0.0.1"))
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("the pod waited %s for its commit, want at least 100ms", took)
	}
	l.logs.await(t, "a pod starts before its policies are in force")
	// The plugin is still connected.
	l.release()
	rt.RunPod(t, pod("b", "10.0.0.2"))
	l.expect(t, "a 10.0.0.1", "b 10.0.0.2")

	// The commit ends the wait.
	l = newLab(t, rt.Socket, time.Minute)
	wait(t, "the first report", l.plugin.Synced())
	l.hold()
	done := make(chan struct{})
	go func() { defer close(done); rt.RunPod(t, pod("c", "10.0.0.3")) }()
	l.await(t, "c 10.0.0.3")
	select {
	case <-done:
		t.Error("the pod started before its commit")
	default:
	}
	l.release()
	wait(t, "the start of the pod", done)
}

// TestWaitBelowRequestTimeout answers before the runtime disconnects the plugin.
func TestWaitBelowRequestTimeout(t *testing.T) {
	adaptation.SetPluginRequestTimeout(time.Second)
	t.Cleanup(func() { adaptation.SetPluginRequestTimeout(requestTimeout) })
	rt, l := started(t, time.Minute)
	l.hold()
	rt.RunPod(t, pod("a", "10.0.0.1"))
	l.release()
	rt.RunPod(t, pod("b", "10.0.0.2"))
	l.expect(t, "a 10.0.0.1", "b 10.0.0.2")
}

// TestInvalidPod lets pods start that it cannot use.
func TestInvalidPod(t *testing.T) {
	rt, l := started(t, time.Minute, &api.PodSandbox{Id: "x"})
	l.logs.await(t, "ignored a pod of the container runtime")
	rt.RunPod(t, &api.PodSandbox{Id: strings.Repeat("x", 10000), Name: "a\nb", Ips: []string{"10.0.0.1"}})
	rt.RunPod(t, pod("a", "10.0.0.1", "not an address", "10.0.0.2"))
	l.expect(t, "a 10.0.0.1")
}

func TestConfig(t *testing.T) {
	if _, err := nri.New(nri.Config{}); err == nil {
		t.Error("New without a socket returned no error")
	}
}

// lab is a plugin with a model of which the test makes the commits.
type lab struct {
	plugin *nri.Plugin
	logs   *logs

	mu        sync.Mutex
	model     *model.Model
	committed chan struct{}
	// held is true while commits do not happen.
	held bool
}

func newLab(t *testing.T, socket string, bound time.Duration, edit ...func(*nri.Config)) *lab {
	t.Helper()
	l := &lab{model: model.New(model.Config{NodeName: "node-1"}), committed: make(chan struct{}), logs: &logs{}}
	cfg := nri.Config{Socket: socket, Deliver: l.deliver, Wait: bound, Logger: l.logs.logger()}
	for _, f := range edit {
		f(&cfg)
	}
	var err error
	l.plugin, err = nri.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.plugin.Run(ctx) }()
	t.Cleanup(func() { cancel(); wait(t, "the end of the plugin", done) })
	return l
}

func (l *lab) deliver(change func(*model.Model)) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l.model)
	l.model.Refresh()
	committed := l.committed
	if !l.held {
		l.commit()
	}
	return committed
}

func (l *lab) commit() {
	close(l.committed)
	l.committed = make(chan struct{})
}

func (l *lab) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
}

func (l *lab) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	l.commit()
}

// pods returns the pods as "name address...".
func (l *lab) pods() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]bool)
	for _, p := range l.model.Snapshot().Pods {
		text := p.Name.Name
		for _, a := range p.Addresses {
			text += " " + a.String()
		}
		out[text] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(out)), "\n")
}

func (l *lab) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := l.pods(); got != strings.Join(want, "\n") {
		t.Errorf("pods:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

func (l *lab) await(t *testing.T, want ...string) {
	t.Helper()
	aggregatortest.Eventually(t, strings.Join(want, ", "), func() bool { return l.pods() == strings.Join(want, "\n") })
}
