package daemon

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/cmd/weft/conditions"
	"github.com/weft-proxy/weft/cmd/weft/sysctl"
)

// newMonitor leaves out the aggregator's conditions if of is nil.
func (d *daemon) newMonitor(of *aggregatorHealth) error {
	d.servers = &serverErrors{}
	if d.takeover {
		d.successor = d.newSuccessor()
	}
	d.clock = &wallClock{log: d.log, start: time.Now()}
	cfg := conditions.Config{
		Process: string(d.verb), Version: d.version, Conditions: d.conditions(of), Event: func(_, _, _, _ string) {},
		Logger: d.log, Registerer: d.registry, Now: time.Now,
	}
	if d.cluster != nil {
		cfg.Event = d.cluster.events.Condition
	}
	var err error
	d.monitor, err = conditions.NewMonitor(cfg)
	return err
}

func (d *daemon) conditions(of *aggregatorHealth) []conditions.Condition {
	list := []conditions.Condition{{Name: conditions.Clock, Degraded: d.clock.check}}
	if d.cluster != nil {
		if kube, ok := d.cluster.source.(interface{ Reachable() error }); ok {
			list = append(list, conditions.Condition{Name: conditions.APIServer, Degraded: kube.Reachable})
		}
	}
	if of != nil {
		list = append(list, of.conditions()...)
	}
	if len(d.frontends) > 0 {
		list = append(list, conditions.Condition{Name: conditions.Node, Degraded: d.node})
	}
	for _, f := range d.frontends {
		list = append(list, conditions.Condition{Name: f.Name(), NotReady: f.Ready, Degraded: f.Degraded})
		if k, ok := f.(interface{ Kubelet() func() error }); ok && k.Kubelet() != nil {
			list = append(list, conditions.Condition{Name: conditions.Kubelet, Degraded: k.Kubelet()})
		}
		if pods, ok := f.(interface{ Interfaces() error }); ok {
			list = append(list, conditions.Condition{Name: conditions.PodInterfaces, Degraded: pods.Interfaces})
		}
	}
	list = append(list, conditions.Condition{Name: conditions.HTTP, Degraded: d.servers.err})
	if d.successor != nil {
		list = append(list, conditions.Condition{Name: conditions.Takeover, Degraded: d.successor.failing})
	}
	return list
}

func (d *daemon) node() error {
	return joined(d, func(f interface{ Node() error }) error { return f.Node() })
}

type aggregatorHealth struct {
	aggregator interface {
		Healthy() error
		Stored() error
		Drift() error
		Converged() error
		Missing() error
		Refused() error
	}
	// rival fails if another weft wants the socket, current if the configuration differs from its
	// file. Both need the socket.
	rival, current check
	// the root of the host's file system
	root string
}

func (h *aggregatorHealth) conditions() []conditions.Condition {
	return []conditions.Condition{
		{Name: conditions.Aggregator, NotReady: h.aggregator.Healthy},
		{Name: conditions.Socket, Degraded: h.rival},
		{Name: conditions.Configuration, Degraded: h.current},
		{Name: conditions.StateDirectory, Degraded: h.aggregator.Stored},
		{Name: conditions.Conntrack, Degraded: func() error { return checkConntrack(h.root) }},
		{Name: conditions.Tables, Degraded: h.aggregator.Drift},
		{Name: conditions.Publishers, NotReady: h.aggregator.Converged, Degraded: h.aggregator.Missing},
		{Name: conditions.Fragments, Degraded: h.aggregator.Refused},
	}
}

var (
	conntrackEntries = prometheus.NewDesc("weft_conntrack_entries", "Connections that the kernel tracks in this network namespace.", nil, nil)
	conntrackLimit   = prometheus.NewDesc("weft_conntrack_limit", "Connections that the kernel tracks at most; further ones are dropped.", nil, nil)
)

type conntrackSize string

// Describe implements prometheus.Collector.
func (root conntrackSize) Describe(to chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(root, to)
}

// Collect implements prometheus.Collector; the kernel may not track connections.
func (root conntrackSize) Collect(to chan<- prometheus.Metric) {
	if entries, limit, err := sysctl.Tracked(string(root)); err == nil && limit > 0 {
		to <- prometheus.MustNewConstMetric(conntrackEntries, prometheus.GaugeValue, float64(entries))
		to <- prometheus.MustNewConstMetric(conntrackLimit, prometheus.GaugeValue, float64(limit))
	}
}

// conntrackFull is in percent; above it new connections are about to be dropped.
const conntrackFull = 95

func checkConntrack(root string) error {
	entries, limit, err := sysctl.Tracked(root)
	if err != nil || limit == 0 || entries*100 < limit*conntrackFull {
		return nil
	}
	return fmt.Errorf("the connection tracking table is full: %d of %d entries", entries, limit)
}
