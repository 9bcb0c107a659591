package services

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
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
	// A family without addresses in the list has no NodePorts.
	NodePortAddresses model.NodePortList
	// feature gate KubeProxyNFTablesLocalhostNodePorts; nil serves the loopback addresses in NodePortAddresses
	LoopbackNodePorts *bool
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
	// nil means the process's network namespace; Dial is loopback.Config.Dial
	Network health.Network
	Dial    func(context.Context, netip.AddrPort) (*net.TCPConn, error)
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
	list, modes := &c.NodePortAddresses, c.NodePortAddresses.LoopbackModes(c.LoopbackNodePorts)
	for f := range model.NumFamilies {
		listed := func(p netip.Prefix) bool { return model.FamilyOf(p.Addr()) == f }
		switch {
		case !have[f]:
		case list.Loopback[f] && modes[f] == model.LoopbackIgnored:
			c.Logger.Warn(fmt.Sprintf("loopback addresses of %s do not serve NodePorts: the feature gate KubeProxyNFTablesLocalhostNodePorts is false", f))
		case !list.Primary && !list.OnlyPrimary() && !list.Loopback[f] && !slices.ContainsFunc(list.Prefixes, listed):
			c.Logger.Warn(fmt.Sprintf("the NodePort addresses have none of %s: it has no NodePorts", f))
		}
	}
}
