package daemon

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
)

// newMonitor makes the monitor of the process: the conditions of the aggregator, if it has
// one, those of the frontends, and those of the process. The order is that of causes.
func (d *daemon) newMonitor(ofAggregator []conditions.Condition) error {
	list := append([]conditions.Condition{(&wallClock{log: d.log, start: time.Now()}).condition()}, d.ofSource()...)
	list = append(list, ofAggregator...)
	for _, f := range d.frontends {
		if n, ok := f.(interface{ Node() error }); ok {
			list = append(list, conditions.Condition{Name: "node", Check: func() error { return conditions.Degrade(n.Node()) }})
		}
		list = append(list, conditions.Condition{Name: f.Name(), Check: func() error {
			if err := f.Ready(); err != nil {
				return err
			}
			return conditions.Degrade(f.Degraded())
		}})
	}
	d.servers = &serverErrors{}
	list = append(list, conditions.Condition{Name: "http", Check: func() error { return conditions.Degrade(d.servers.err()) }})
	if d.takeover {
		d.successor = d.newSuccessor()
		list = append(list, d.successor.condition())
	}
	cfg := conditions.Config{Process: string(d.verb), Version: d.version, Conditions: list, Logger: d.log, Registerer: d.registry}
	if d.cluster != nil {
		cfg.Event = d.cluster.events.Node
	}
	var err error
	d.monitor, err = conditions.NewMonitor(cfg)
	return err
}

// ofSource returns the condition of the API server, if there is one.
func (d *daemon) ofSource() []conditions.Condition {
	if d.cluster == nil {
		return nil
	}
	kube, ok := d.cluster.source.(interface{ Reachable() error })
	if !ok {
		return nil
	}
	return []conditions.Condition{{Name: "api-server", Remote: true, Check: func() error { return conditions.Degrade(kube.Reachable()) }}}
}

// aggregatorConditions returns the conditions of the aggregator and of what it reads. They are
// checked once the socket is there.
func (d *daemon) aggregatorConditions(agg *aggregator.Aggregator, control *access.Control) []conditions.Condition {
	return []conditions.Condition{
		{Name: "aggregator", Check: func() error { return prefixed("aggregator", agg.Healthy()) }},
		{Name: "socket", Check: func() error { return conditions.Degrade(d.socket.Rival()) }},
		{Name: "configuration", Check: func() error { return conditions.Degrade(control.Current()) }},
		{Name: "state-directory", Check: func() error { return conditions.Degrade(agg.Stored()) }},
		{Name: "conntrack", Check: func() error { return conditions.Degrade(checkConntrack(procNetfilter)) }},
		{Name: "tables", Check: func() error { return conditions.Degrade(agg.Drift()) }},
		{Name: "publishers", Check: func() error {
			if err := agg.Converged(); err != nil {
				return prefixed("aggregator", err)
			}
			return conditions.Degrade(agg.Missing())
		}},
	}
}

// prefixed returns an error that says which part it is of; nil if err is nil.
func prefixed(part string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", part, err)
}

// procNetfilter has the settings and counters of connection tracking.
const procNetfilter = "/proc/sys/net/netfilter"

// The metrics of the connection tracking table.
var (
	conntrackEntries = prometheus.NewDesc("weft_conntrack_entries", "Connections that the kernel tracks in this network namespace.", nil, nil)
	conntrackLimit   = prometheus.NewDesc("weft_conntrack_limit", "Connections that the kernel tracks at most; further ones are dropped.", nil, nil)
)

// conntrackSize are the metrics of the connection tracking table in a directory of proc.
type conntrackSize string

// Describe implements prometheus.Collector.
func (conntrackSize) Describe(to chan<- *prometheus.Desc) {
	to <- conntrackEntries
	to <- conntrackLimit
}

// Collect implements prometheus.Collector. Without connection tracking there is nothing.
func (dir conntrackSize) Collect(to chan<- prometheus.Metric) {
	if entries, limit, ok := readConntrack(string(dir)); ok {
		to <- prometheus.MustNewConstMetric(conntrackEntries, prometheus.GaugeValue, float64(entries))
		to <- prometheus.MustNewConstMetric(conntrackLimit, prometheus.GaugeValue, float64(limit))
	}
}

// conntrackFull is the share of the table, in percent, above which new connections are about
// to be dropped.
const conntrackFull = 95

// checkConntrack returns an error if the connection tracking table is full.
func checkConntrack(dir string) error {
	entries, limit, ok := readConntrack(dir)
	if !ok || entries*100 < limit*conntrackFull {
		return nil
	}
	return fmt.Errorf("the connection tracking table is full: %d of %d entries (raise net.netfilter.nf_conntrack_max)", entries, limit)
}

// readConntrack returns how many connections are tracked and how many can be; ok is false if
// the kernel does not track any.
func readConntrack(dir string) (entries, limit uint64, ok bool) {
	read := func(name string) uint64 {
		text, err := os.ReadFile(dir + "/" + name)
		if err != nil {
			return 0
		}
		// 0 if it is not a number.
		n, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		return n
	}
	entries, limit = read("nf_conntrack_count"), read("nf_conntrack_max")
	return entries, limit, limit > 0
}
