package services

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// counted is a frontend that counts, and a clock with which no scrape uses what another one
// has read.
type counted struct {
	*Frontend
	stop    func()
	reg     *prometheus.Registry
	scrapes atomic.Int64
}

// countedFrontend runs a frontend that counts, until it is stopped.
func (s *stack) countedFrontend(t *testing.T, counters render.Counters, active bool, objects ...any) *counted {
	t.Helper()
	out := &counted{reg: prometheus.NewRegistry()}
	s.configure = func(c *Config) {
		c.Counters, c.ActiveConnections, c.Registerer = counters, active, out.reg
		c.Now = func() time.Time { return time.Now().Add(time.Duration(out.scrapes.Load()) * time.Minute) }
	}
	out.Frontend, out.stop = s.frontend(t, newScript(objects...))
	await(t, "the first commit", func() bool { return out.Status().Published })
	return out
}

// scrape returns the metrics of Services that are not 0, by "name label value ...".
func (c *counted) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	c.scrapes.Add(1)
	families, err := c.reg.Gather()
	must(t, err)
	out := make(map[string]float64)
	for _, f := range families {
		name, ok := strings.CutPrefix(f.GetName(), "weft_service_")
		if !ok {
			continue
		}
		for _, m := range f.GetMetric() {
			key := name
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != 0 {
				out[key] = v
			}
		}
	}
	return out
}

// TestServiceCounters sends connections to Services and to nothing: the metrics have each of
// them once, also after endpoints have changed and after a restart of the frontend.
//
// Behaviour: 30.
func TestServiceCounters(t *testing.T) {
	c := newCluster(t)
	c.node.Sysctl(t, map[string]string{"netfilter/nf_conntrack_acct": "1"})
	s := newStack(t, c.node)
	s.aggregator(t)
	all := threeServices(setNode(nodeAddr[0], nodeAddr[1]))
	f := s.countedFrontend(t, render.CountEndpoints, true, all...)
	if got := f.scrape(t); len(got) != 0 {
		t.Errorf("before the first connection there is %v", got)
	}
	dial := func(n int, network string, to netip.AddrPort) {
		t.Helper()
		for range n {
			if _, _, err := ask(c.pods[1], network, to.String()); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := func(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a, port) }
	dial(3, "tcp", at(clusterIP(model.IPv4, 1), 80))
	dial(2, "tcp", at(clusterIP(model.IPv6, 1), 80))
	dial(4, "tcp", at(nodeAddr[model.IPv4], 30080))
	dial(1, "udp", at(clusterIP(model.IPv4, 3), 80))
	for range 2 {
		_, _, _ = ask(c.pods[1], "udp", at(clusterIP(model.IPv4, 2), 80).String())
	}
	_, _, _ = ask(c.pods[1], "udp", at(clusterIP(model.IPv4, 1), 81).String())
	_, _, _ = ask(c.pods[1], "udp", at(clusterIP(model.IPv6, 2), 80).String())

	// The listing of connections may outlast a scrape.
	var got map[string]float64
	scrape := func() map[string]float64 {
		await(t, "active connections", func() bool { got = f.scrape(t); return got["active_connections default udp udp s3"] > 0 })
		return got
	}
	scrape()
	byEndpoint := func(metric, port string) (sum float64) {
		for k, v := range got {
			if strings.HasPrefix(k, metric+" ") && strings.HasSuffix(k, " default "+port) {
				sum += v
			}
		}
		return sum
	}
	publishtest.Equal(t, "connections to endpoints of s1", byEndpoint("endpoint_new_connections_total", "tcp tcp s1"), 9)
	publishtest.Equal(t, "active connections to endpoints of s3", byEndpoint("endpoint_active_connections", "udp udp s3"), 1)
	udp := got["active_connection_bytes original default udp udp s3"]
	// 20 of IP, 8 of UDP, and one.
	if udp != 29 || got["active_connection_bytes reply default udp udp s3"] <= udp {
		t.Errorf("the UDP connection has %v bytes, want 29, and more in the reply: %v", udp, got)
	}
	want := map[string]float64{
		"new_connections_total default tcp tcp s1": 9, "new_connections_total default udp udp s3": 1,
		"active_connections default udp udp s3": 1, "dropped_packets_total no-endpoints": 3, "dropped_packets_total unknown-port": 1,
	}
	only := func(m map[string]float64) map[string]float64 {
		maps.DeleteFunc(m, func(k string, _ float64) bool {
			return strings.HasPrefix(k, "endpoint_") || strings.HasPrefix(k, "active_connection_bytes") || strings.HasPrefix(k, "active_connections default tcp")
		})
		return m
	}
	if diff := cmp.Diff(want, only(got)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s\n%s", diff, c.node.ListRuleset(t))
	}
	list := c.node.ListRuleset(t)
	for _, want := range []string{
		`10.96.0.3 . udp . 80 counter packets 1 bytes 29 comment "default/s3:udp"`,
		"10.96.0.3 . udp . 80 . 0 counter packets 1 bytes 29 : 10.244.1.2 . 8080", `counter name "dropped-no-endpoints" reject`,
	} {
		if !strings.Contains(list, want) {
			t.Errorf("nft does not list %q:\n%s", want, list)
		}
	}
	json := c.node.Run(t, "nft", "-j", "list", "set", "ip", "weft", "service-connections")
	if want := `"comment": "default/s3:udp", "counter": {"packets": 1, "bytes": 29}`; !strings.Contains(json, want) {
		t.Errorf("nft does not list %q: %s", want, json)
	}

	// Another number of endpoints replaces the elements that pick, not those that count.
	f.cfg.Source.(*script).deliver(setSlice("s1", discoveryv1.AddressTypeIPv4, podAddr(0, 2).String()))
	await(t, "the change", func() bool { return strings.Contains(c.node.ListRuleset(t), `"default/s1:tcp" : goto pick-1`) })
	dial(5, "tcp", at(clusterIP(model.IPv4, 1), 80))
	want["new_connections_total default tcp tcp s1"] = 14
	if diff := cmp.Diff(want, only(scrape())); diff != "" {
		t.Errorf("metrics after a change (-want +got):\n%s", diff)
	}

	// What was counted before a restart does not count again.
	f.stop()
	f = s.countedFrontend(t, render.CountEndpoints, false, all...)
	if got := f.scrape(t); len(got) != 0 {
		t.Errorf("after a restart there is %v", got)
	}
	dial(2, "tcp", at(clusterIP(model.IPv4, 1), 80))
	want = map[string]float64{"new_connections_total default tcp tcp s1": 2}
	if diff := cmp.Diff(want, only(f.scrape(t))); diff != "" {
		t.Errorf("metrics after a restart (-want +got):\n%s", diff)
	}
}

// TestSwitchCounters turns the counters on and off while connections are made without a pause,
// also where an earlier process and an earlier aggregator have left the rules: none fails.
//
// Behaviour: 13.
func TestSwitchCounters(t *testing.T) {
	c := newCluster(t)
	s := newStack(t, c.node)
	_, stopAggregator := s.aggregator(t)
	all := threeServices(setNode(nodeAddr[0], nodeAddr[1]))
	f := s.countedFrontend(t, render.CountNothing, false, all...)
	var made [model.NumFamilies]atomic.Int64
	end := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(end)
	for fam := range model.NumFamilies {
		for _, to := range []netip.AddrPort{netip.AddrPortFrom(clusterIP(fam, 1), 80), netip.AddrPortFrom(nodeAddr[fam], 30080)} {
			wg.Go(func() {
				for {
					select {
					case <-end:
						return
					default:
					}
					if _, _, err := ask(c.pods[1], "tcp", to.String()); err != nil {
						t.Errorf("connect to %s: %v", to, err)
						return
					}
					made[fam].Add(1)
				}
			})
		}
	}
	order := []render.Counters{render.CountServices, render.CountEndpoints, render.CountNothing, render.CountEndpoints, render.CountServices, render.CountNothing}
	for i, counters := range order {
		f.stop()
		if i%2 == 0 {
			stopAggregator()
			_, stopAggregator = s.aggregator(t)
		}
		f = s.countedFrontend(t, counters, false, all...)
		before := [2]int64{made[0].Load(), made[1].Load()}
		await(t, "connections of both families", func() bool { return made[0].Load() > before[0]+20 && made[1].Load() > before[1]+20 })
		list := c.node.ListRuleset(t)
		for what, want := range map[string]bool{
			"set service-connections {": counters >= render.CountServices, "counter dropped-no-endpoints {": counters >= render.CountServices,
			"ip daddr . th dport\n\t\tcounter\n": counters >= render.CountEndpoints,
		} {
			publishtest.Equal(t, fmt.Sprintf("with %s, that there is %q in\n%s", counters, what, list), strings.Contains(list, what), want)
		}
		if counters != render.CountNothing {
			got := f.scrape(t)
			await(t, "counted connections", func() bool {
				got = f.scrape(t)
				return got["new_connections_total default tcp tcp s1"] > 0
			})
		}
	}
	t.Logf("%d and %d connections", made[0].Load(), made[1].Load())
}
