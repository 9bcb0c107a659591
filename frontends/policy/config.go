package policy

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weft-proxy/weft/aggregator/client"
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

// Events receives events about objects of the cluster, and must not block. kind is "Normal" or
// "Warning", reason is one word.
type Events interface {
	Object(ref corev1.ObjectReference, kind, reason, message string)
}

// Config describes a Frontend.
type Config struct {
	// Required. The caller runs it.
	Source source.Source
	// Required.
	NodeName string
	// Empty means the default.
	Socket string
	// Local replaces the socket in the same process.
	Local grpc.ClientConnInterface
	// Text is client.Config.Text.
	Text client.Text
	// RuntimeSocket is the NRI socket of the container runtime; empty disables it.
	RuntimeSocket string
	Start         render.Start
	// DropLog is the number of logged drops per second for each set of policies and direction; 0
	// disables the log.
	DropLog int
	// RecheckFor limits a recheck if this publisher may not list connections; 0 means
	// render.DefaultRecheckFor.
	RecheckFor time.Duration
	// MinInterval is the least time between two updates. 0 means DefaultMinInterval; negative
	// disables it.
	MinInterval time.Duration
	// MaxRetry limits the wait after a failed update; 0 means DefaultMaxRetry. The frontend is
	// unhealthy if a change waits twice as long.
	MaxRetry time.Duration
	// Nil discards.
	Events Events
	// Nil means that no conditions of ClusterNetworkPolicies are written.
	StatusClient kubernetes.Interface
	// Nil means time.Now.
	Now func() time.Time
	// Nil discards.
	Logger *slog.Logger
	// Nil disables the metrics.
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
