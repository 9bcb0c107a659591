package scale

import (
	"context"
	"fmt"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// events notes when another client than the proxy is told of each version of an EndpointSlice, to
// exclude the API server's time.
type events struct {
	watch watch.Interface
	ended chan struct{}

	mu sync.Mutex
	at map[string]time.Time // by resource version
}

// follow begins with later changes. Stop it before many changes: it takes CPU from the proxy.
func follow(ctx context.Context, a *api) (*events, error) {
	slices := a.client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll)
	list, err := slices.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("follow slices: %w", err)
	}
	e := &events{ended: make(chan struct{}), at: map[string]time.Time{}}
	if e.watch, err = slices.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion}); err != nil {
		return nil, fmt.Errorf("follow slices: %w", err)
	}
	go e.run()
	return e, nil
}

func (e *events) run() {
	defer close(e.ended)
	for event := range e.watch.ResultChan() {
		now := time.Now()
		if slice, ok := event.Object.(*discoveryv1.EndpointSlice); ok {
			e.mu.Lock()
			e.at[slice.ResourceVersion] = now
			e.mu.Unlock()
		}
	}
}

func (e *events) stop() {
	e.watch.Stop()
	<-e.ended
}

func (e *events) when(version string) (time.Time, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := e.at[version]
	if !ok {
		return at, fmt.Errorf("the API server sent no event of version %s", version)
	}
	return at, nil
}
