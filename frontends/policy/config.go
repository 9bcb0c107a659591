package policy

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weft-proxy/weft/frontends/policy/render"
	"github.com/weft-proxy/weft/frontends/source"
)

const (
	// Publisher is the name under which the frontend publishes.
	Publisher = "policy"
	// DefaultMinInterval is the least time between two updates.
	DefaultMinInterval = 10 * time.Millisecond
	// DefaultMaxRetry limits the wait after a failed update.
	DefaultMaxRetry = 30 * time.Second
)

// Events receives events about objects of the cluster: kind is "Normal" or "Warning", reason is one
// word. It must not block.
type Events interface {
	Object(ref corev1.ObjectReference, kind, reason, message string)
}

// Config describes a Frontend.
type Config struct {
	// Source has the objects. Required. The caller runs it.
	Source source.Source
	// NodeName is this node's name in Kubernetes. Its pods are isolated here. Required.
	NodeName string
	// Socket is the path of the aggregator's socket; empty means the default.
	Socket string
	// Local carries the updates to an aggregator in the same process, instead of the socket.
	Local grpc.ClientConnInterface
	// RuntimeSocket is the path of the NRI socket of the container runtime, which reports pods
	// before the API does. If empty, only the API reports pods.
	RuntimeSocket string
	// Start says what happens to unknown pods of this node.
	Start render.Start
	// DropLog is the number of dropped packets per second that are logged for each set of policies
	// and direction; 0 disables the log.
	DropLog int
	// RecheckFor is how long connections are judged again after a policy was narrowed, if this
	// publisher may not list connections; 0 means render.DefaultRecheckFor.
	RecheckFor time.Duration
	// MinInterval is the least time from the end of one update to the start of the next. 0 means
	// DefaultMinInterval; negative disables it.
	MinInterval time.Duration
	// MaxRetry limits the wait after a failed update. The frontend is unhealthy if a change waits
	// twice as long. 0 means DefaultMaxRetry.
	MaxRetry time.Duration
	// Events receives warnings about policies and pods; nil discards.
	Events Events
	// StatusClient writes the conditions of ClusterNetworkPolicies; nil disables this.
	StatusClient kubernetes.Interface
	// Now is the clock of latencies; nil means time.Now.
	Now func() time.Time
	// Logger; nil discards.
	Logger *slog.Logger
	// Registerer receives the metrics; nil disables them.
	Registerer prometheus.Registerer
}

func (c *Config) setDefaults() {
	c.MinInterval = cmp.Or(c.MinInterval, DefaultMinInterval)
	c.MaxRetry = cmp.Or(c.MaxRetry, DefaultMaxRetry)
	c.Events = cmp.Or[Events](c.Events, noEvents{})
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
}

type noEvents struct{}

// Object implements Events.
func (noEvents) Object(corev1.ObjectReference, string, string, string) {}
