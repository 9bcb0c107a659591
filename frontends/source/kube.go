package source

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/weft-proxy/weft/frontends/source/quiet"
)

// optionalGrace is how long what is not in every cluster is waited for once
// everything else is there.
const optionalGrace = 5 * time.Second

// KubeConfig says which API server to follow, and as which node.
type KubeConfig struct {
	// Kubeconfig is the path of a kubeconfig file. Empty means the service
	// account of the pod that this runs in.
	Kubeconfig string
	// Server is the address of the API server, such as https://192.0.2.1:6443;
	// it goes before the one that the kubeconfig or the pod's environment has.
	Server string
	// QPS and Burst limit requests a second; watches do not count. 0 means 5 and
	// 10, a negative QPS no limit.
	QPS   float32
	Burst int
	// ContentType is what is sent, AcceptContentTypes what is asked for. Empty
	// means protobuf, and that or else JSON.
	ContentType        string
	AcceptContentTypes string
	// Client is used in place of all these if it is given.
	Client kubernetes.Interface
	// NodeName is the name of the Node object to follow. Required.
	NodeName string
	// UserAgent names the client in the API server's logs; empty means "weft".
	UserAgent string
	// Logger also takes what client-go logs, but for what it gives to klog's
	// global logger; nil discards.
	Logger *slog.Logger
}

// Kube is the Kubernetes API as a source.
type Kube struct {
	client kubernetes.Interface
	// transport is what client uses, nil if it was given.
	transport   *http.Client
	node        string
	log         *slog.Logger
	retryAbsent time.Duration
	grace       time.Duration
}

// NewKube returns a source. It reads the kubeconfig but does not connect.
func NewKube(cfg KubeConfig) (*Kube, error) { return newKube(cfg, newDial()) }

// newKube is NewKube with a dial, which is another one in tests.
func newKube(cfg KubeConfig, dial dial) (*Kube, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.NodeName == "" {
		return nil, errors.New("configure kubernetes source: no node name")
	}
	k := &Kube{client: cfg.Client, node: cfg.NodeName, log: cfg.Logger, retryAbsent: retryAbsent, grace: optionalGrace}
	if k.client == nil {
		var err error
		if k.client, k.transport, err = newClient(cfg, dial); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// Client returns the client for the same API server, with the same limits.
func (k *Kube) Client() kubernetes.Interface { return k.client }

// Run implements Source. An API server that does not answer, or not any more,
// is no error: it is asked again, and what was delivered stays.
func (k *Kube) Run(ctx context.Context, deliver func([]Event)) error {
	// client-go logs through the context where it has one, and elsewhere through
	// klog's global logger, which is the program's to set.
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(quiet.New(k.log.With("component", "client-go").Handler())))
	var mu sync.Mutex
	inTurn := func(events []Event) {
		mu.Lock()
		defer mu.Unlock()
		deliver(events)
	}
	var stores []*store
	var all sync.WaitGroup
	for _, kind := range k.kinds() {
		s := newStore(kind, inTurn)
		stores = append(stores, s)
		all.Go(func() { k.track(ctx, kind, s) })
	}
	k.log.Info("following the kubernetes API", "node", k.node)
	// Only when all first lists have been delivered is it known what exists
	// (rule 131).
	if k.awaitLists(ctx, stores) {
		inTurn([]Event{Synced{}})
	}
	all.Wait()
	if k.transport != nil {
		utilnet.CloseIdleConnectionsFor(k.transport.Transport)
	}
	return nil
}

// awaitLists waits until it is known what exists, and reports whether it is:
// without what is optional it is known well enough after a while.
func (k *Kube) awaitLists(ctx context.Context, stores []*store) bool {
	for _, s := range stores {
		if s.kind.optional {
			continue
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return false
		}
	}
	grace := time.NewTimer(k.grace)
	defer grace.Stop()
	for _, s := range stores {
		select {
		case <-s.ready:
		case <-grace.C:
			k.log.Warn("a resource has not been listed yet: going on without it", "resource", s.kind.resource)
			return true
		case <-ctx.Done():
			return false
		}
	}
	return true
}
