package traffic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// Names of the metrics.
const (
	metricConnections         = "weft_service_new_connections_total"
	metricEndpointConnections = "weft_service_endpoint_new_connections_total"
	metricDropped             = "weft_service_dropped_packets_total"
	metricActive              = "weft_service_active_connections"
	metricActiveEndpoint      = "weft_service_endpoint_active_connections"
	metricBytes               = "weft_service_active_connection_bytes"
)

const (
	// scrapeTimeout is how long a scrape waits for the aggregator.
	scrapeTimeout = 2 * time.Second
	// minAge is for how long what was read is used again.
	minAge = 3 * time.Second
	// maxPorts and maxEndpoints are the numbers of series of ports and of endpoints. What is
	// beyond them is counted together, with the Service "others".
	maxPorts     = 1000
	maxEndpoints = 5000
)

// Ports finds ports of Services: it is implemented by render.Renderer.
type Ports interface {
	PortOf(family, set, key string) (render.Port, bool)
	PortAt(to netip.AddrPort, protocol model.Protocol) (render.Port, bool)
	PortAtNodePort(f model.Family, number uint16, protocol model.Protocol) (render.Port, bool)
}

// Config describes a Collector.
type Config struct {
	// Socket is the path of the aggregator's socket; empty means the default.
	Socket string
	// Publisher is the name under which it reads.
	Publisher string
	// Counters is what the rules count.
	Counters render.Counters
	// Flows is true if the entries of conntrack are counted too.
	Flows bool
	Ports Ports
	// Adopted reports whether the rules were there before this process. What they had counted
	// at the first scrape does not count again.
	Adopted func() bool
	// Now is the clock.
	Now    func() time.Time
	Logger *slog.Logger
}

// Collector reads at a scrape what the kernel has counted. It implements
// prometheus.Collector.
type Collector struct {
	cfg   Config
	descs descs
	// sets are the names of those that count.
	sets []string

	// mu is held while counters are read, so that scrapes at the same time share what is read.
	mu sync.Mutex
	// client is nil until the first scrape that reaches an aggregator.
	client *client.Client
	counts *counts
	// read is when counters were read.
	read  time.Time
	flows flowReader
}

// descs describe the metrics.
type descs struct{ connections, endpoints, dropped, active, activeEndpoints, bytes *prometheus.Desc }

// New returns a collector.
func New(cfg Config) *Collector {
	port := []string{"namespace", "service", "port", "protocol"}
	endpoint := append(port[:len(port):len(port)], "endpoint")
	c := &Collector{cfg: cfg, sets: cfg.Counters.ConnectionSets(), counts: newCounts(), descs: descs{
		connections: prometheus.NewDesc(metricConnections,
			"New connections that this node sent to an endpoint, by port of the Service, since weft started. Further ports than 1,000 are counted as the Service others.", port, nil),
		endpoints: prometheus.NewDesc(metricEndpointConnections,
			"New connections that this node sent to an endpoint, by port of the Service and endpoint, without those with session affinity. Further endpoints than 5,000 are counted as the Service others.", endpoint, nil),
		dropped: prometheus.NewDesc(metricDropped, "Packets to Services that this node dropped or rejected, by reason, since weft started.", []string{"reason"}, nil),
		active: prometheus.NewDesc(metricActive,
			"Connections to a port of the Service that this node tracks, without those of TCP that are closed.", port, nil),
		activeEndpoints: prometheus.NewDesc(metricActiveEndpoint, "Active connections by port of the Service and endpoint.", endpoint, nil),
		bytes: prometheus.NewDesc(metricBytes,
			"Bytes of the active connections so far, in both directions, where the kernel counts them (net.netfilter.nf_conntrack_acct).", append(port[:len(port):len(port)], "direction"), nil),
	}}
	c.flows = flowReader{cfg: &c.cfg}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.descs.connections, c.descs.endpoints, c.descs.dropped, c.descs.active, c.descs.activeEndpoints, c.descs.bytes} {
		out <- d
	}
}

// Collect implements prometheus.Collector. While the aggregator does not answer, there are
// no values.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.connect(ctx); err != nil {
		c.cfg.Logger.Debug("no counters of Services", "err", err)
		return
	}
	if c.cfg.Counters != render.CountNothing {
		if err := c.update(ctx); err != nil {
			c.cfg.Logger.Debug("no counters of Services", "err", err)
		} else {
			c.sendCounts(out)
		}
	}
	if c.cfg.Flows {
		c.sendFlows(out, c.flows.latest(ctx, c.client))
	}
}

// connect dials the aggregator if there is no connection yet.
func (c *Collector) connect(ctx context.Context) error {
	if c.client != nil {
		return nil
	}
	conn, err := client.Dial(ctx, client.Config{Socket: c.cfg.Socket, Publisher: c.cfg.Publisher, DialTimeout: -1})
	if err != nil {
		return fmt.Errorf("read counters of Services: %w", err)
	}
	c.client = conn
	return nil
}

// update reads the counters unless that was done a moment ago.
func (c *Collector) update(ctx context.Context) error {
	if now := c.cfg.Now(); c.read.IsZero() || now.Sub(c.read) >= minAge {
		tables, err := c.tables(ctx)
		if err != nil {
			return err
		}
		c.counts.update(tables, c.cfg.Ports, c.read.IsZero() && c.cfg.Adopted())
		c.read = now
	}
	return nil
}

// tables reads the tables of both families: named counters, and elements that have counted
// something.
func (c *Collector) tables(ctx context.Context) (out []*weftv1.GetTableResponse, err error) {
	for _, family := range []string{"ip", "ip6"} {
		t, err := c.client.GetTable(ctx, &weftv1.GetTableRequest{
			Family: family, Name: render.Table, ObjectsOnly: true, Live: true, Sets: c.sets, Counted: true,
		})
		switch {
		case errors.Is(err, client.ErrNotFound):
			continue // the family is not in use
		case err != nil:
			return nil, fmt.Errorf("read counters of Services: %w", err)
		}
		out = append(out, t)
	}
	return out, nil
}

// sendCounts sends the counters.
func (c *Collector) sendCounts(out chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	for of, n := range c.counts.ports.bounded() {
		counter(c.descs.connections, n, of.port()...)
	}
	if c.cfg.Counters >= render.CountEndpoints {
		for of, n := range c.counts.endpoints.bounded() {
			counter(c.descs.endpoints, n, append(of.port(), of.endpoint)...)
		}
	}
	for reason := range render.NumDropReasons {
		counter(c.descs.dropped, c.counts.dropped[reason], reason.String())
	}
}

// sendFlows sends what a listing of conntrack has found; nil sends nothing.
func (c *Collector) sendFlows(out chan<- prometheus.Metric, f *flowCounts) {
	if f == nil {
		return
	}
	gauge := func(d *prometheus.Desc, n uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	for of, n := range bounded(f.ports, maxPorts) {
		gauge(c.descs.active, n.connections, of.port()...)
		if f.accounted {
			gauge(c.descs.bytes, n.original, append(of.port(), "original")...)
			gauge(c.descs.bytes, n.reply, append(of.port(), "reply")...)
		}
	}
	if c.cfg.Counters >= render.CountEndpoints {
		for of, n := range bounded(f.endpoints, maxEndpoints) {
			gauge(c.descs.activeEndpoints, n.connections, append(of.port(), of.endpoint)...)
		}
	}
}

// Close ends the connection.
func (c *Collector) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		c.flows.wait()
		_ = c.client.Close()
		c.client = nil
	}
}
