package source

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/weft-proxy/weft/frontends/source/quiet"
)

// optionalGrace bounds Synced's wait for resources that are not Required.
const optionalGrace = 5 * time.Second

// KubeConfig selects an API server.
type KubeConfig struct {
	// Kubeconfig is a file path; empty means the pod's service account.
	Kubeconfig string
	// overrides the kubeconfig and the pod's environment
	Server string
	// requests per second, except watches; 0 means 5 and 10; negative QPS means unlimited
	QPS   float32
	Burst int
	// Empty encodings mean protobuf, or JSON for types without protobuf.
	ContentType        string
	AcceptContentTypes string
	// name in server logs; empty means "weft"
	UserAgent string
	// nil means TCP with silent connections closed within seconds
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Restarted reports whether an earlier process's rules are in force; nil means false. See StartSpread.
	Restarted func(ctx context.Context) bool
	// Logger also receives client-go's log, except messages to klog's global logger; nil discards.
	Logger *slog.Logger
}

// Kube is the Kubernetes API as a Source.
type Kube struct {
	client    *client
	restarted func(ctx context.Context) bool
	log       *slog.Logger
	// versioned are the users with Version.
	users, versioned []*user
	watches          []*resourceWatch
	// closed after the first request for the version
	asked                          chan struct{}
	retryFirst, retryAbsent, grace time.Duration
}

// NewKube reads the kubeconfig or service account but does not connect.
func NewKube(cfg KubeConfig) (*Kube, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Dial == nil {
		cfg.Dial = newDial()
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	return &Kube{client: c, restarted: cfg.Restarted, log: cfg.Logger, asked: make(chan struct{}), retryFirst: retryFirst, retryAbsent: retryAbsent, grace: optionalGrace}, nil
}

// Client returns a client of the same API server that shares QPS and Burst.
func (k *Kube) Client() kubernetes.Interface { return k.client.typed }

// Reachable returns nil while the API server answers and each Required watch works, else the last failure.
func (k *Kube) Reachable() error {
	if err := k.client.reach.current(); err != nil {
		return fmt.Errorf("%s: %w", k.client.server, err)
	}
	for _, w := range k.watches {
		if err := w.failing.Load(); err != nil && w.presence == Required {
			return fmt.Errorf("%s: %w", k.client.server, *err)
		}
	}
	return nil
}

// Subscribe implements Source.
func (k *Kube) Subscribe(s Subscription) error {
	u, err := newUser(s)
	if err != nil {
		return err
	}
	for _, kind := range u.kinds {
		w, err := k.watch(kind)
		if err != nil {
			return fmt.Errorf("subscribe %s to %s: %w", s.User, kind.resource.Resource, err)
		}
		w.store.users = append(w.store.users, follower{u, kind})
		u.watches = append(u.watches, w)
	}
	k.users = append(k.users, u)
	if u.Version != nil {
		k.versioned = append(k.versioned, u)
	}
	return nil
}

func (k *Kube) watch(kind *kind) (*resourceWatch, error) {
	k.client.messages.add(kind)
	key := watchKey{kind.resource, kind.labels.String(), kind.fields.String()}
	for _, w := range k.watches {
		if w.key != key {
			continue
		}
		if first := w.store.users[0]; first.kind.presence != kind.presence || !first.kind.sameType(kind) {
			return nil, fmt.Errorf("Presence or Object is different from that of %s", first.user.User)
		}
		return w, nil
	}
	requests, err := k.client.listWatch(kind)
	if err != nil {
		return nil, err
	}
	w := &resourceWatch{key: key, presence: kind.presence, requests: requests, reach: k.client.reach, store: newStore(), log: k.log}
	k.watches = append(k.watches, w)
	return w, nil
}

// Run implements Source. It retries an unresponsive API server and keeps delivered objects.
func (k *Kube) Run(ctx context.Context) error {
	// The program owns klog's global logger.
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(quiet.New(k.log.With("component", "client-go").Handler())))
	k.client.reach.first = k.retryFirst
	if !k.awaitStart(ctx) {
		return nil
	}
	var all sync.WaitGroup
	if len(k.versioned) > 0 {
		all.Go(func() { k.followVersion(ctx) })
	}
	for _, w := range k.watches {
		w.retryFirst, w.retryAbsent = k.retryFirst, k.retryAbsent
		all.Go(func() { w.run(ctx) })
	}
	for _, u := range k.users {
		all.Go(func() {
			if k.awaitLists(ctx, u) {
				unread := u.unlisted()
				if len(unread) > 0 {
					u.reportUnread(unread)
				}
				u.synced()
				u.followUnlisted(ctx, unread)
			}
		})
	}
	k.log.Info("following the Kubernetes API", "server", k.client.server, "watches", len(k.watches))
	all.Wait()
	utilnet.CloseIdleConnectionsFor(k.client.http.Transport)
	return nil
}

// awaitLists waits for the first lists of a user's kinds (rule 131 of package services), and for the version.
func (k *Kube) awaitLists(ctx context.Context, u *user) bool {
	var grace <-chan time.Time
	for _, required := range []bool{true, false} {
		for _, w := range u.watches {
			if (w.presence == Required) != required {
				continue
			}
			select {
			case <-w.store.ready:
			case <-grace:
				k.log.Warn("a resource has not been listed yet: continuing without it", "user", u.User, "resource", w.key.resource.Resource)
				return true
			case <-ctx.Done():
				return false
			}
		}
		grace = time.After(k.grace)
	}
	if u.Version == nil {
		return true
	}
	select {
	case <-k.asked:
	case <-grace:
	case <-ctx.Done():
		return false
	}
	return true
}
