package main

import (
	"log/slog"

	"k8s.io/client-go/kubernetes"

	"github.com/weft-proxy/weft/frontends/services/event"
	"github.com/weft-proxy/weft/frontends/services/source"
)

// newEvents returns where the daemon reports to; without an API server that is
// nowhere.
func newEvents(src source.Source, node string, log *slog.Logger) (*event.Recorder, error) {
	var api kubernetes.Interface
	if k, ok := src.(*source.Kube); ok {
		api = k.Client()
	}
	return event.New(event.Config{Client: api, NodeName: node, Logger: log})
}
