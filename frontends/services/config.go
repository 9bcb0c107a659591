package services

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/services/health"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
)

const (
	// Publisher is the name under which the frontend publishes.
	Publisher = "services"
	// DefaultMasqueradeBit is the bit of the packet mark that asks for
	// masquerading, kube-proxy's.
	DefaultMasqueradeBit = render.DefaultMasqueradeBit
	// DefaultSyncPeriod is kube-proxy's.
	DefaultSyncPeriod = 30 * time.Second
	// DefaultMinSyncPeriod is the least time between two updates.
	DefaultMinSyncPeriod = 100 * time.Millisecond
)

// Config says what to follow and how the node's rules should be.
type Config struct {
	// Source is where the objects come from. Required.
	Source source.Source
	// NodeName is this node's name in Kubernetes. Required: it says which
	// endpoints are local and which Node object is meant.
	NodeName string
	// Socket is the path of the aggregator's socket; empty means the default.
	Socket string
	// Detect says which flows come from pods.
	Detect render.Detect
	// NodeAddresses are this node's, in place of those of the Node object where
	// valid (kube-proxy's bindAddress).
	NodeAddresses [model.Families]netip.Addr
	// IgnoreExternalIPs leaves spec.externalIPs out (feature gate
	// AllowServiceExternalIPs off).
	IgnoreExternalIPs bool
	// NodePortAddresses are the prefixes of the local addresses that answer on
	// NodePorts; a family that the list leaves out has no NodePorts. Empty
	// means the addresses of the Node object ("primary").
	NodePortAddresses []netip.Prefix
	// MasqueradeAll masquerades every flow to a ClusterIP.
	MasqueradeAll bool
	// MasqueradeBit is a bit of the packet mark, 0 to 31; nil means
	// DefaultMasqueradeBit.
	MasqueradeBit *int
	// SyncPeriod is how long a change may wait for its commit before the node
	// counts as not healthy, twice over. 0 means DefaultSyncPeriod.
	SyncPeriod time.Duration
	// MinSyncPeriod is the least time from the end of one update to the start
	// of the next. The first one after a quiet time goes out at once. 0 means
	// DefaultMinSyncPeriod, negative none.
	MinSyncPeriod time.Duration
	// Events takes warnings about Services; nil means that nobody does.
	Events Events
	// Network is where the health checks of Services listen; nil means the
	// network namespace of the process.
	Network health.Network
	// Now is the clock that health and latencies are judged by; nil means
	// time.Now.
	Now func() time.Time
	// Logger; nil discards.
	Logger *slog.Logger
	// Registerer takes the metrics; nil means none.
	Registerer prometheus.Registerer
}

func (c *Config) setDefaults() {
	if c.MasqueradeBit == nil {
		bit := DefaultMasqueradeBit
		c.MasqueradeBit = &bit
	}
	if c.SyncPeriod == 0 {
		c.SyncPeriod = DefaultSyncPeriod
	}
	if c.MinSyncPeriod == 0 {
		c.MinSyncPeriod = DefaultMinSyncPeriod
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

func (c *Config) validate() error {
	var errs []error
	if c.Source == nil {
		errs = append(errs, errors.New("no source of objects: give a kubeconfig or a directory of manifests"))
	}
	if c.NodeName == "" {
		errs = append(errs, errors.New("no node name: give the node's name in Kubernetes"))
	}
	return errors.Join(errs...)
}

// families returns the IP families that the network namespace has: IPv6 may be
// compiled out or disabled (rule 100). proc is where procfs is mounted.
func families(proc string) [model.Families]bool {
	out := [model.Families]bool{model.IPv4: true, model.IPv6: true}
	if _, err := os.Stat(proc + "/net/if_inet6"); err != nil {
		out[model.IPv6] = false
	}
	if b, err := os.ReadFile(proc + "/sys/net/ipv6/conf/all/disable_ipv6"); err == nil && strings.TrimSpace(string(b)) == "1" {
		out[model.IPv6] = false
	}
	return out
}

// warn logs what the configuration leads to where that may surprise.
func (c *Config) warn(have [model.Families]bool) {
	if !have[model.IPv6] {
		c.Logger.Info("this node has no IPv6: only IPv4 is served")
	}
	c.warnDetect()
	var listed [model.Families]int
	for _, p := range c.NodePortAddresses {
		if p.Addr().IsLoopback() {
			c.Logger.Warn("loopback addresses never answer on NodePorts: ignored", "prefix", p)
			continue
		}
		listed[model.FamilyOf(p.Addr())]++
	}
	if len(c.NodePortAddresses) == 0 {
		return
	}
	for f, n := range listed {
		if n == 0 && have[f] {
			c.Logger.Warn(fmt.Sprintf("the NodePort addresses have none of %s: no NodePort answers there", model.Family(f)))
		}
	}
}
