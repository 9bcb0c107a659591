package daemon

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/event"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// TestStartingOnce says of a node whose frontends are processes of their own once that its proxy starts.
func TestStartingOnce(t *testing.T) {
	api := apitest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	g, ctx := errgroup.WithContext(ctx)
	var clients []kubernetes.Interface
	for _, verb := range []Verb{VerbPolicy, VerbServices} {
		src, err := source.NewKube(source.KubeConfig{Server: api.URL()})
		must(t, err)
		events, err := event.New(event.Config{Client: src.Client(), NodeName: "node-1", Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		clients = append(clients, src.Client())
		(&cluster{source: src, events: events, version: string(verb)}).run(ctx, g, verb.hasServices())
		// What is sent after it says that all before it was sent.
		events.Node(event.Normal, "Last", string(verb))
	}
	started := ""
	aggregatortest.Eventually(t, "the last event of both", func() bool {
		list, err := clients[0].EventsV1().Events("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		notes := make(map[string][]string)
		for i := range list.Items {
			notes[list.Items[i].Reason] = append(notes[list.Items[i].Reason], list.Items[i].Note)
		}
		started = strings.Join(notes[event.Starting], ", ")
		return len(notes["Last"]) == 2 && started != ""
	})
	if started != "weft services" {
		t.Errorf("started are %q, want the Service frontend alone", started)
	}
	cancel()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
