package render

import (
	"fmt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Counters selects the counters of the ruleset. Each value includes the values before it.
type Counters uint8

const (
	CountNothing Counters = iota
	// new connections per listener, and dropped packets by reason
	CountServices
	// also new connections per slot without session affinity
	CountEndpoints
)

var counterNames = [...]string{CountNothing: "none", CountServices: "service", CountEndpoints: "endpoint"}

func (c Counters) String() string { return counterNames[c] }

// ParseCounters is the inverse of Counters.String.
func ParseCounters(name string) (Counters, error) {
	for c, n := range counterNames {
		if n == name {
			return Counters(c), nil
		}
	}
	return 0, fmt.Errorf("%q: want none, service or endpoint", name)
}

// DropReason is why a packet to a Service is dropped or rejected.
type DropReason uint8

// The values of DropReason. NoEndpoints and UnknownPort reject the packet.
const (
	NoEndpoints DropReason = iota
	// The traffic policy is Local and all endpoints are on other nodes.
	NoLocalEndpoints
	// The ClusterIP has no such port.
	UnknownPort
	// No Service has this address of the ServiceCIDRs.
	UnusedClusterIP
	SourceRanges
	NumDropReasons
)

var dropReasons = [NumDropReasons]string{"no-endpoints", "no-local-endpoints", "unknown-port", "unused-cluster-ip", "source-ranges"}

// String returns the reason's metric label.
func (r DropReason) String() string { return dropReasons[r] }

const dropCounter = "dropped-"

// DroppedBy returns the reason of a drop counter.
func DroppedBy(counter string) (DropReason, bool) {
	for r := range NumDropReasons {
		if counter == dropCounter+r.String() {
			return r, true
		}
	}
	return 0, false
}

func (c *Config) drop(r DropReason, verdict string) string {
	if c.Counters == CountNothing {
		return verdict
	}
	return fmt.Sprintf("counter name %q %s", dropCounter+r.String(), verdict)
}

func (c *Config) dropCounters() (out []*weftv1.Object) {
	if c.Counters == CountNothing {
		return nil
	}
	for r := range NumDropReasons {
		out = append(out, &weftv1.Object{Kind: "counter", Name: dropCounter + r.String()})
	}
	return out
}

func (c *Config) has(s set) bool { return !declarations[s].connections || c.Counters >= CountServices }

func (c *Config) counts(s set) bool {
	d := &declarations[s]
	return d.connections && c.Counters >= CountServices || d.slot && c.Counters >= CountEndpoints
}

// ConnectionSets returns the sets and maps with counters of connections.
func (c Counters) ConnectionSets() (out []string) {
	cfg := Config{Counters: c}
	for s := range numSets {
		if cfg.counts(s) {
			out = append(out, declarations[s].name)
		}
	}
	return out
}
