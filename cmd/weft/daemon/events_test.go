package daemon

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/event"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/source/apitest"
)

// TestEventsReachTheAPI reports as the daemon does, to the API server that its
// source follows; with manifests there is none, and nothing happens.
//
// Behaviour: 165.
func TestEventsReachTheAPI(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	src, err := source.NewKube(source.KubeConfig{Server: apitest.New(t).URL()})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := event.New(event.Config{Client: src.Client(), NodeName: "node-1", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rec.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	e := &httpServers{events: rec}
	e.report(endpoint{flag: flagHealthz, reason: "FailedToStartProxierHealthcheck"}, context.DeadlineExceeded, 0)
	rec.Service(types.NamespacedName{Namespace: "default", Name: "web"}, "Warning", "ServiceRefused", "no")
	poll(t, "both events", func() bool {
		list, err := src.Client().EventsV1().Events("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		var got []string
		for i := range list.Items {
			got = append(got, list.Items[i].Regarding.Kind+"/"+list.Items[i].Regarding.Name+" "+list.Items[i].Type+" "+list.Items[i].Reason)
		}
		all := strings.Join(got, ", ")
		return strings.Contains(all, "Node/node-1 Warning FailedToStartProxierHealthcheck") && strings.Contains(all, "Service/web Warning ServiceRefused")
	})
	none, err := event.New(event.Config{NodeName: "node-1", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	none.Node("Normal", "Starting", "")
	if err := none.Run(ctx); err != nil {
		t.Error(err)
	}
}
