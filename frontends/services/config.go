package services

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/weft-proxy/weft/frontends/services/health"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
)

const (
	// Publisher is the name under which the frontend publishes.
	Publisher = "services"
	// DefaultMasqueradeBit is the bit of the packet mark that requests masquerading, as
	// in kube-proxy.
	DefaultMasqueradeBit = render.DefaultMasqueradeBit
	// DefaultSyncPeriod is 30 s, as in kube-proxy, which uses it for full syncs; weft has none.
	DefaultSyncPeriod = 30 * time.Second
	// DefaultMinSyncPeriod is the minimum time between two updates.
	DefaultMinSyncPeriod = 100 * time.Millisecond
)

// Config describes a Frontend.
type Config struct {
	// Source has the objects. Required. The caller runs it.
	Source source.Source
	// NodeName is this node's name in Kubernetes, which selects the Node object and the
	// local endpoints. Required.
	NodeName string
	// Socket is the path of the aggregator's socket; empty means the default.
	Socket string
	// Local carries the updates in place of the socket, to an aggregator in the same process.
	Local grpc.ClientConnInterface
	// Detect is how flows from pods are recognized. The zero value recognizes none.
	Detect render.Detect
	// NodeAddresses override those of the Node object if they are valid (kube-proxy's
	// bindAddress).
	NodeAddresses [model.NumFamilies]netip.Addr
	// IgnoreExternalIPs ignores spec.externalIPs (feature gate AllowServiceExternalIPs
	// off).
	IgnoreExternalIPs bool
	// NodePortAddresses are the prefixes of the local addresses that accept NodePorts. A
	// family that is not in the list has no NodePorts. Empty means the addresses of the
	// Node object ("primary").
	NodePortAddresses []netip.Prefix
	// MasqueradeAll masquerades every flow to a ClusterIP.
	MasqueradeAll bool
	// MasqueradeBit is a bit of the packet mark, 0 to 31; nil means
	// DefaultMasqueradeBit.
	MasqueradeBit *int
	// Counters is what the rules count, as metrics.
	Counters render.Counters
	// ActiveConnections exports the entries of conntrack as metrics too, which lists the
	// whole table again and again.
	ActiveConnections bool
	// SyncPeriod bounds the wait after a failed update. A change that waits twice as long
	// for its commit makes the node unhealthy. 0 means DefaultSyncPeriod.
	SyncPeriod time.Duration
	// MinSyncPeriod is the minimum time from the end of one update to the start of the
	// next. 0 means DefaultMinSyncPeriod, negative none.
	MinSyncPeriod time.Duration
	// Events receives warnings about Services, and must not block; nil discards.
	Events health.Events
	// Network is where the health checks of Services listen; nil means the
	// network namespace of the process.
	Network health.Network
	// Now is the clock of health and latencies; nil means time.Now.
	Now func() time.Time
	// Logger; nil discards.
	Logger *slog.Logger
	// Registerer receives the metrics; nil means none.
	Registerer prometheus.Registerer
}

func (c *Config) setDefaults() {
	c.MasqueradeBit = cmp.Or(c.MasqueradeBit, new(DefaultMasqueradeBit))
	c.SyncPeriod = cmp.Or(c.SyncPeriod, DefaultSyncPeriod)
	c.MinSyncPeriod = cmp.Or(c.MinSyncPeriod, DefaultMinSyncPeriod)
	c.Events = cmp.Or[health.Events](c.Events, health.NoEvents{})
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
}

// warn logs the effects of the configuration that may surprise.
func (c *Config) warn(have [model.NumFamilies]bool) {
	if !have[model.IPv6] {
		c.Logger.Info("this node does not have IPv6: only IPv4 works")
	}
	c.warnDetect()
	var listed [model.NumFamilies]int
	for _, p := range c.NodePortAddresses {
		if p.Addr().IsLoopback() {
			c.Logger.Warn("loopback addresses do not accept NodePorts: ignoring them", "prefix", p)
			continue
		}
		listed[model.FamilyOf(p.Addr())]++
	}
	if len(c.NodePortAddresses) == 0 {
		return
	}
	for f, n := range listed {
		if n == 0 && have[f] {
			c.Logger.Warn(fmt.Sprintf("the NodePort addresses have none of %s: it has no NodePorts", model.Family(f)))
		}
	}
}
