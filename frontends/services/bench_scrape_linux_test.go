package services

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/services/traffic"
)

// scrapeServices is how many Services there are, and scrapeFlows how many entries of conntrack.
const (
	scrapeServices = 10_000
	scrapeFlows    = 100_000
)

// BenchmarkScrape reads the counters of 10,000 Services with ten endpoints each, of which
// 1,000 had connections, as one process with the aggregator:
//
//	cpu-ms      of the process, the kernel's part included
//	commit-ms   median commit of one Service's new endpoint
//	beside-ms   the same beside scrapes without a pause
//	series      what a scrape has
//
// flows=100000 also lists connection tracking.
func BenchmarkScrape(b *testing.B) {
	for _, bb := range []struct {
		name     string
		counters render.Counters
		flows    bool
	}{{"counters=service", render.CountServices, false}, {"counters=endpoint", render.CountEndpoints, false}, {"flows=100000", render.CountNothing, true}} {
		b.Run(bb.name, func(b *testing.B) {
			l, s, p := planeLane(b, laneModel(scrapeServices), bb.counters)
			if bb.flows {
				injectFlows(b, l)
			} else {
				to := l.toServices(1000)
				for to.turn < 1000 {
					if _, err := connections(to); err != nil {
						b.Fatal(err)
					}
				}
			}
			// Each collector reads once, which may outlast some scrapes.
			scrape := func() (series int) {
				c := traffic.New(traffic.Config{Socket: s.socket, Publisher: Publisher, Counters: bb.counters, Flows: bb.flows, Ports: p.r,
					Adopted: func() bool { return false }, Now: time.Now, Logger: s.log})
				defer c.Close()
				reg := prometheus.NewRegistry()
				reg.MustRegister(c)
				for series <= int(render.NumDropReasons) {
					families, err := reg.Gather()
					if err != nil {
						b.Error(err)
						return series
					}
					series = 0
					for _, f := range families {
						series += len(f.GetMetric())
					}
				}
				return series
			}
			series := scrape()
			commit := p.commits(b)
			before := cpu(b)
			for b.Loop() {
				series = scrape()
			}
			spent := cpu(b) - before
			end, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				for {
					select {
					case <-end:
						return
					default:
						scrape()
					}
				}
			}()
			beside := p.commits(b)
			close(end)
			<-ended
			b.ReportMetric(ms(spent)/float64(b.N), "cpu-ms")
			b.ReportMetric(ms(commit), "commit-ms")
			b.ReportMetric(ms(beside), "beside-ms")
			b.ReportMetric(float64(series), "series")
		})
	}
}

// commits returns the median of what commits take that give a Service another endpoint.
func (p *plane) commits(b *testing.B) time.Duration {
	b.Helper()
	var took []time.Duration
	for i := range 100 {
		changes := laneModel(1)
		s := changes.Services[0].New
		s.Ports[0].Backends[model.IPv4].Cluster = model.MakeEndpoints(model.Endpoint{Addr: laneEndpoint(1, i%2)})
		began := time.Now()
		p.publish(b, model.Changes{Services: changes.Services})
		took = append(took, time.Since(began))
	}
	return median(took)
}

// injectFlows makes entries of conntrack for connections to the Services.
func injectFlows(b *testing.B, l *lane) {
	b.Helper()
	var lines strings.Builder
	for i := range scrapeFlows {
		to, endpoint := laneService(i%scrapeServices), laneEndpoint(i%scrapeServices, i/scrapeServices)
		from := fmt.Sprintf("10.244.%d.%d", 3+i/50_000, 2+i%200)
		fmt.Fprintf(&lines, "-I -p tcp -s %s -d %s --sport %d --dport %d -r %s -q %s --reply-port-src %d --reply-port-dst %d --state ESTABLISHED -u ASSURED,SEEN_REPLY -t 3600\n",
			from, to.Addr(), 1024+i/200, to.Port(), endpoint.Addr(), from, endpoint.Port(), 1024+i/200)
	}
	file := filepath.Join(b.TempDir(), "flows")
	must(b, os.WriteFile(file, []byte(lines.String()), 0o600))
	l.node.Run(b, "conntrack", "-R", file)
}
