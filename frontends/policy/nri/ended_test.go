package nri_test

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/weft-proxy/weft/frontends/policy/nri"
	"github.com/weft-proxy/weft/frontends/testing/nritest"
)

// TestEndedPods ignores pods that have ended, which runtimes report until they are removed:
// their addresses are those of other pods.
func TestEndedPods(t *testing.T) {
	pods := []*api.PodSandbox{pod("ended", "10.0.0.1"), pod("new", "10.0.0.1"), pod("no-process", "10.0.0.2"), pod("no-container", "10.0.0.3")}
	pods[0].Pid, pods[2].Pid = 0, 0
	containers := []*api.Container{{Id: "c1", PodSandboxId: "sandbox-no-process"}, {Id: "c2", PodSandboxId: "sandbox-new"}}
	for _, parts := range [][]*api.SynchronizeRequest{
		{{Pods: pods, Containers: containers}},
		{{Pods: pods, More: true}, {Containers: containers}},
		{{Containers: containers, More: true}, {Pods: pods}},
	} {
		p := newPeer(t)
		l := newLab(t, p.socket, time.Minute)
		c := p.accept(t)
		for _, part := range parts {
			must(t, c.call(t.Context(), "Synchronize", part))
		}
		wait(t, "the report", l.plugin.Synced())
		l.expect(t, "new 10.0.0.1", "no-container 10.0.0.3", "no-process 10.0.0.2")
		if s := l.plugin.Stats(); s != (nri.Stats{Connected: true, Sandboxes: 3}) {
			t.Errorf("%+v", s)
		}
	}
}

// TestForget forgets the pods of a runtime that does not come back, such as one whose NRI was
// switched off, and learns them again if it does.
func TestForget(t *testing.T) {
	rt := nritest.New(t)
	rt.Start(t, pod("a", "10.0.0.1"))
	l := newLab(t, rt.Socket, time.Minute, func(cfg *nri.Config) { cfg.Forget = 100 * time.Millisecond })
	wait(t, "the first report", l.plugin.Synced())
	for range 2 {
		l.await(t, "a 10.0.0.1")
		rt.End()
		ended := time.Now()
		l.await(t)
		if took := time.Since(ended); took < 100*time.Millisecond {
			t.Errorf("forgot the pods after %s", took)
		}
		if s := l.plugin.Stats(); s != (nri.Stats{}) {
			t.Errorf("%+v", s)
		}
		rt.Start(t, pod("a", "10.0.0.1"))
	}
	l.await(t, "a 10.0.0.1")
	l.logs.await(t, "forgot the pods that the API does not know")
}
