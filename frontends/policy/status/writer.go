package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/weft-proxy/weft/frontends/policy/objects"
	"github.com/weft-proxy/weft/frontends/source"
)

const (
	// window is the longest wait before a node writes.
	window = 10 * time.Second
	// Up to maxNodes, few write at the same time.
	maxNodes       = 8192
	retry          = time.Minute
	requestTimeout = 10 * time.Second
	manager        = "weft"
	path           = "/apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies"
)

// Config describes a Writer.
type Config struct {
	// Required.
	Client kubernetes.Interface
	// Required.
	NodeName string
	// Nil discards.
	Logger *slog.Logger
}

// Writer writes the conditions.
type Writer struct {
	cfg  Config
	send func(ctx context.Context, name string, patch []byte) error
	// nudge has room for one signal: a due time may have changed.
	nudge chan struct{}

	mu       sync.Mutex
	policies map[string]*policy
	rejected map[string]string // by policy
}

func New(cfg Config) (*Writer, error) {
	if cfg.Client == nil || cfg.NodeName == "" {
		return nil, errors.New("configure the status of policies: an API server and a node name are required")
	}
	w := &Writer{cfg: cfg, nudge: make(chan struct{}, 1), policies: make(map[string]*policy), rejected: make(map[string]string)}
	w.cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	w.send = func(ctx context.Context, name string, patch []byte) error {
		return cfg.Client.Discovery().RESTClient().Patch(types.ApplyPatchType).AbsPath(path, name, "status").
			Param("fieldManager", manager).Param("force", "true").Body(patch).Do(ctx).Error()
	}
	return w, nil
}

// Subscription returns the writer's subscription to a source.
func (w *Writer) Subscription() source.Subscription {
	return source.Subscription{
		User: "policy status",
		Kinds: []source.AnyKind{source.Kind[*v1alpha2.ClusterNetworkPolicy, *policy]{
			Resource: schema.GroupVersion(v1alpha2.GroupVersion).WithResource("clusternetworkpolicies"), Object: &v1alpha2.ClusterNetworkPolicy{},
			Scheme: objects.NewScheme(), Presence: source.Custom,
			Decode: parse,
			Set:    func(name types.NamespacedName, p *policy) { w.set(name.Name, p) },
			Delete: func(name types.NamespacedName) { delete(w.policies, name.Name) },
		}},
		Deliver: func(events []source.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, e := range events {
				e.Apply()
			}
			w.wake()
		},
	}
}

// The lock is held.
func (w *Writer) set(name string, p *policy) {
	if before := w.policies[name]; before != nil && before.uid == p.uid && before.generation == p.generation {
		p.due = before.due
	}
	w.policies[name] = p
	w.schedule(name, p)
}

// SetRejected replaces the policies rejected on this node: reasons by name. The Writer may be nil.
func (w *Writer) SetRejected(reasons map[string]string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rejected = maps.Clone(reasons)
	for name, p := range w.policies {
		w.schedule(name, p)
	}
	w.wake()
}

// The lock is held.
func (w *Writer) schedule(name string, p *policy) {
	c := p.condition(w.cfg.NodeName, w.rejected[name])
	switch {
	case !p.missing(&c, w.cfg.NodeName):
		p.due = time.Time{}
	case p.due.IsZero():
		p.due = time.Now().Add(delay(w.cfg.NodeName, p, &c))
	}
}

func (w *Writer) wake() {
	select {
	case w.nudge <- struct{}{}:
	default:
	}
}

// The density of the nodes' times grows exponentially towards the window's end, by a factor of
// maxNodes. For any number of nodes, about one time per second ends around the first (RFC 5401).
func delay(node string, p *policy, c *metav1.Condition) time.Duration {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%d\x00%s", node, p.uid, p.generation, c.Status)
	// FNV mixes the last letters too little.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	u := (float64(x>>11) + 1) / (1 << 53)
	return time.Duration(float64(window) * max(0, 1+math.Log(u)/math.Log(maxNodes)))
}

// Run writes conditions until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	for {
		name, wait := w.next()
		if name != "" && wait <= 0 {
			w.write(ctx, name)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-w.nudge:
		case <-time.After(wait):
		}
	}
}

// The name may be empty.
func (w *Writer) next() (name string, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var due time.Time
	for _, n := range slices.Sorted(maps.Keys(w.policies)) {
		if at := w.policies[n].due; !at.IsZero() && (due.IsZero() || at.Before(due)) {
			name, due = n, at
		}
	}
	if name == "" {
		return "", time.Hour
	}
	return name, time.Until(due)
}

func (w *Writer) write(ctx context.Context, name string) {
	w.mu.Lock()
	p := w.policies[name]
	if p == nil {
		w.mu.Unlock()
		return
	}
	c := p.condition(w.cfg.NodeName, w.rejected[name])
	if c.LastTransitionTime = metav1.Now(); p.present != nil && p.present.Status == c.Status {
		c.LastTransitionTime = p.present.LastTransitionTime
	}
	patch, err := p.patch(name, c)
	w.mu.Unlock()
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		err = w.send(ctx, name, patch)
		cancel()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.policies[name] != p && err == nil {
		// The source was faster.
		return
	}
	if p = w.policies[name]; p == nil {
		return
	}
	switch {
	case err == nil:
		p.present = &c
		w.schedule(name, p)
	case apierrors.IsConflict(err):
		// The source reports another node's condition.
		p.due = time.Now().Add(window)
	default:
		p.due = time.Now().Add(retry)
		if ctx.Err() == nil {
			w.cfg.Logger.Warn("cannot write the status of a ClusterNetworkPolicy: trying again later", "name", name, "wait", retry, "error", err)
		}
	}
}
