package nri_test

import (
	"os"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"

	"github.com/weft-proxy/weft/frontends/testing/nritest"
)

// requestTimeout is the runtime's; the plugin waits for half of it at most.
const requestTimeout = 20 * time.Second

func TestMain(m *testing.M) {
	adaptation.SetPluginRequestTimeout(requestTimeout)
	os.Exit(m.Run())
}

// started starts a process of a runtime with pods, and a plugin that has received them.
func started(t *testing.T, bound time.Duration, pods ...*api.PodSandbox) (*nritest.Runtime, *lab) {
	t.Helper()
	rt := nritest.New(t)
	rt.Start(t, pods...)
	l := newLab(t, rt.Socket, bound)
	wait(t, "the first report", l.plugin.Synced())
	return rt, l
}

func pod(name string, ips ...string) *api.PodSandbox { return nritest.Pod(name, ips...) }
