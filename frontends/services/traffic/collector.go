package traffic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

const (
	metricConnections         = "weft_service_new_connections_total"
	metricEndpointConnections = "weft_service_endpoint_new_connections_total"
	metricDropped             = "weft_service_dropped_packets_total"
	metricActive              = "weft_service_active_connections"
	metricActiveEndpoint      = "weft_service_endpoint_active_connections"
	metricRejected            = "kubeproxy_nftables_localhost_nodeport_rejected_packets_total"
	metricBytes               = "weft_service_active_connection_bytes"
)

// The rest is summed as Service "others".
const (
	maxPorts     = 1000
	maxEndpoints = 5000
)

// Ports finds ports of Services. render.Renderer implements it.
type Ports interface {
	PortOf(family, set, key string) (render.Port, bool)
	PortAt(to netip.AddrPort, protocol model.Protocol) (render.Port, bool)
	PortAtNodePort(f model.Family, number uint16, protocol model.Protocol) (render.Port, bool)
}

// Config describes a Collector.
type Config struct {
	// empty means the default
	Socket string
	// name for reading
	Publisher string
	Counters  render.Counters
	// Flows also counts conntrack entries.
	Flows bool
	// Loopback also counts packets rejected on loopback addresses.
	Loopback [model.NumFamilies]model.LoopbackMode
	Ports    Ports
	// Adopted reports rules older than this process. Then counts before the first scrape are ignored.
	Adopted func() bool
	Now     func() time.Time
	Logger  *slog.Logger
}

// Collector reads kernel counters on a scrape. It implements prometheus.Collector.
type Collector struct {
	cfg   Config
	descs descs
	sets  []string

	counters, flows beside

	// mu guards the fields below.
	mu     sync.Mutex
	client *client.Client
	counts *counts
	begun  bool
	listed *flowCounts
}

type descs struct {
	connections, endpoints, dropped, active, activeEndpoints, bytes, rejected *prometheus.Desc
}

func New(cfg Config) *Collector {
	port := []string{"namespace", "service", "port", "protocol"}
	endpoint := append(port[:len(port):len(port)], "endpoint")
	c := &Collector{cfg: cfg, sets: cfg.Counters.ConnectionSets(), counts: newCounts(), descs: descs{
		connections: prometheus.NewDesc(metricConnections,
			"New connections that this node sent to an endpoint, by port of the Service, since weft started. Further ports than 1,000 are counted as the Service others.", port, nil),
		endpoints: prometheus.NewDesc(metricEndpointConnections,
			"New connections that this node sent to an endpoint, by port of the Service and endpoint, without those with session affinity. Further endpoints than 5,000 are counted as the Service others.", endpoint, nil),
		dropped:  prometheus.NewDesc(metricDropped, "Packets to Services that this node dropped or rejected, by reason, since weft started.", []string{"reason"}, nil),
		rejected: prometheus.NewDesc(metricRejected, "Number of packets rejected on localhost NodePorts, since weft started.", []string{"ip_family", "protocol"}, nil),
		active: prometheus.NewDesc(metricActive,
			"Connections to a port of the Service that this node tracks, without those of TCP that are closed.", port, nil),
		activeEndpoints: prometheus.NewDesc(metricActiveEndpoint, "Active connections by port of the Service and endpoint.", endpoint, nil),
		bytes: prometheus.NewDesc(metricBytes,
			"Bytes of the active connections so far, in both directions, where the kernel counts them (net.netfilter.nf_conntrack_acct).", append(port[:len(port):len(port)], "direction"), nil),
	}}
	// Reads take at most 1/20 of the time. The aggregator lets a publisher list conntrack in an eleventh.
	c.counters = beside{now: cfg.Now, read: c.readCounters, schedule: schedule{every: 3 * time.Second, share: 20, patience: 2 * time.Second, timeout: 20 * time.Second}}
	c.flows = beside{now: cfg.Now, read: c.readFlows, schedule: schedule{every: 15 * time.Second, share: 20, patience: 100 * time.Millisecond, timeout: time.Minute}}
	return c
}

func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.descs.connections, c.descs.endpoints, c.descs.dropped, c.descs.active, c.descs.activeEndpoints, c.descs.bytes, c.descs.rejected} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	for _, part := range []struct {
		wanted bool
		reader *beside
		send   func(chan<- prometheus.Metric)
	}{{c.cfg.Counters != render.CountNothing || c.cfg.Loopback != [model.NumFamilies]model.LoopbackMode{}, &c.counters, c.sendCounts}, {c.cfg.Flows, &c.flows, c.sendFlows}} {
		if !part.wanted {
			continue
		}
		if err := part.reader.latest(context.Background()); err != nil {
			c.cfg.Logger.Debug("metrics of Services are missing", "error", err)
			continue
		}
		part.send(out)
	}
}

func (c *Collector) connect(ctx context.Context) (*client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		conn, err := client.Dial(ctx, client.Config{Socket: c.cfg.Socket, Publisher: c.cfg.Publisher, DialTimeout: -1})
		if err != nil {
			return nil, fmt.Errorf("read counters of Services: %w", err)
		}
		c.client = conn
	}
	return c.client, nil
}

func (c *Collector) readCounters(ctx context.Context) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	tables, err := c.tables(ctx, conn)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.update(tables, c.cfg.Ports, !c.begun && c.cfg.Adopted())
	c.begun = true
	return nil
}

func (c *Collector) readFlows(ctx context.Context) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	listed, err := listFlows(ctx, conn, &c.cfg)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed = listed
	return nil
}

var tableFamilies = [model.NumFamilies]string{"ip", "ip6"}

func (c *Collector) tables(ctx context.Context, conn *client.Client) (out []*weftv1.GetTableResponse, err error) {
	for _, family := range tableFamilies {
		t, err := conn.GetTable(ctx, &weftv1.GetTableRequest{
			Family: family, Name: render.Table, ObjectsOnly: true, Live: true, Sets: c.sets, Counted: true,
		})
		switch {
		case errors.Is(err, client.ErrNotFound):
			continue // unused family
		case err != nil:
			return nil, fmt.Errorf("read counters of Services: %w", err)
		}
		out = append(out, t)
	}
	return out, nil
}

func (c *Collector) sendCounts(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
		if c.cfg.Counters != render.CountNothing {
			counter(c.descs.dropped, c.counts.dropped[reason], reason.String())
		}
	}
	for f, mode := range c.cfg.Loopback {
		for _, p := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
			if mode.Rejects(p) {
				counter(c.descs.rejected, c.counts.rejected[rejectedKey{tableFamilies[f], p}], model.Family(f).String(), strings.ToUpper(p.String()))
			}
		}
	}
}

func (c *Collector) sendFlows(out chan<- prometheus.Metric) {
	c.mu.Lock()
	f := c.listed
	c.mu.Unlock()
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
	c.counters.end()
	c.flows.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		_ = c.client.Close()
		c.client = nil
	}
}
