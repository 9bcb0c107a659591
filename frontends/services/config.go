package services

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/health"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
)

const (
	Publisher = "services"
	// DefaultMasqueradeBit is the packet mark bit for masquerading, as in kube-proxy.
	DefaultMasqueradeBit = render.DefaultMasqueradeBit
	// DefaultSyncPeriod is as in kube-proxy, where it is the full sync period.
	DefaultSyncPeriod    = 30 * time.Second
	DefaultMinSyncPeriod = 100 * time.Millisecond
)

// Config describes a Frontend.
type Config struct {
	// Source is run by the caller. Required.
	Source source.Source
	// required
	NodeName string
	// empty means the default
	Socket string
	// Local replaces the socket with an in-process aggregator.
	Local grpc.ClientConnInterface
	// PodsSocket is the socket of the kubelet's Pods API; empty means that the API alone reports readiness.
	PodsSocket string
	// Text is client.Config.Text.
	Text client.Text
	// The zero value matches no flow.
	Detect render.Detect
	// NodeAddresses override the Node object's addresses (kube-proxy's bindAddress).
	NodeAddresses [model.NumFamilies]netip.Addr
	// AllowExternalIPs is the feature gate AllowServiceExternalIPs. nil follows the API server's version: off
	// from Kubernetes 1.40.
	AllowExternalIPs *bool
	// feature gate KubeProxyNFTablesLocalhostNodePorts; nil if not set
	LocalhostNodePorts *bool
	// NodePortAddresses are local prefixes. A family without prefixes has no NodePorts. Empty means the Node
	// object's addresses ("primary").
	NodePortAddresses []netip.Prefix
	MasqueradeAll     bool
	// 0 to 31; nil means DefaultMasqueradeBit
	MasqueradeBit *int
	Counters      render.Counters
	// ActiveConnections lists the whole conntrack table repeatedly.
	ActiveConnections bool
	// SyncPeriod bounds the wait after a failed update. A change uncommitted for twice as long makes the node
	// unhealthy.
	SyncPeriod time.Duration
	// 0 means DefaultMinSyncPeriod; negative means no wait
	MinSyncPeriod time.Duration
	// must not block; nil discards
	Events health.Events
	// nil means the process's network namespace
	Network health.Network
	// nil means time.Now
	Now    func() time.Time
	Logger *slog.Logger
	// may be nil
	Registerer prometheus.Registerer
}

func (c *Config) setDefaults() {
	c.MasqueradeBit = cmp.Or(c.MasqueradeBit, new(DefaultMasqueradeBit))
	c.SyncPeriod = cmp.Or(c.SyncPeriod, DefaultSyncPeriod)
	c.MinSyncPeriod = cmp.Or(c.MinSyncPeriod, DefaultMinSyncPeriod)
	c.Events = cmp.Or[health.Events](c.Events, health.NoEvents{})
	c.Network = cmp.Or[health.Network](c.Network, health.Host{})
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
}

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
