package services

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rounds is how often each path has its turn in one operation of a benchmark, and
// perTurn how many connections or round trips it makes then: some milliseconds, so
// that what else the machine does meets all of them.
const (
	rounds  = 4
	perTurn = 50
)

// drive makes one turn and returns what each of its parts took.
type drive func(*path) ([]time.Duration, error)

// connections are whole ones: socket, handshake, accept, reset.
func connections(p *path) ([]time.Duration, error) {
	return p.dials(func(whole, _ time.Duration) time.Duration { return whole })
}

// firstPackets is from the first packet of a flow to its answer.
func firstPackets(p *path) ([]time.Duration, error) {
	return p.dials(func(_, answer time.Duration) time.Duration { return answer })
}

func (p *path) dials(take func(whole, answer time.Duration) time.Duration) (out []time.Duration, err error) {
	return out, p.client.Do(func() error {
		for range perTurn {
			began := time.Now()
			c, answer, err := p.dial()
			if err != nil {
				return err
			}
			c.close()
			out = append(out, take(time.Since(began), answer))
		}
		return nil
	})
}

// roundTrips are a byte there and one back over a connection, each of which is
// acknowledged.
func roundTrips(p *path) (out []time.Duration, err error) {
	return out, p.client.Do(func() error {
		c, _, err := p.dial()
		if err != nil {
			return err
		}
		defer c.close()
		b := make([]byte, 1)
		for range perTurn {
			began := time.Now()
			for _, way := range [2][2]int{{c.client, c.server}, {c.server, c.client}} {
				if _, err := unix.Write(way[0], b); err != nil {
					return err
				}
				if _, err := unix.Read(way[1], b); err != nil {
					return err
				}
			}
			out = append(out, time.Since(began))
		}
		return nil
	})
}

// lap is what is driven on which path.
type lap struct {
	drive drive
	path  *path
}

// race drives laps in turns as often as the benchmark wants, and returns the median
// of each in nanoseconds.
func race(b *testing.B, laps ...lap) []float64 {
	b.Helper()
	took := make([][]time.Duration, len(laps))
	for b.Loop() {
		for _, l := range laps {
			if err := l.path.forget(); err != nil {
				b.Fatalf("flush flows: %v", err)
			}
		}
		for round := range rounds {
			for i := range laps {
				if round%2 == 1 {
					// There and back, so that none is always the second.
					i = len(laps) - 1 - i
				}
				t, err := laps[i].drive(laps[i].path)
				must(b, err)
				took[i] = append(took[i], t...)
			}
		}
	}
	out := make([]float64, len(laps))
	for i, t := range took {
		out[i] = float64(median(t).Nanoseconds())
	}
	return out
}

// BenchmarkConnections opens and closes TCP connections through the ClusterIPs of the
// first ten Services among ever more. ns/op is the median of one connection. The
// ratios are of rates in the same run; more is better, and what they differ by with
// ten Services is noise:
//
//	of-10-services          on another node that has ten Services
//	all-dialed-of-10        the same, where all Services are dialed and not ten, so that
//	                        the caches of the processor do not hold what is looked up
//	all-dialed-no-rules     as many endpoints without any rules, of ten of them: what
//	                        of that is the cost of ever other addresses
//	of-bare-nat             conntrack, and one rule that translates all
//	of-no-rules             forwarded to endpoints without any rules or conntrack
func BenchmarkConnections(b *testing.B) { benchmarkSizes(b, connections) }

// BenchmarkFirstPacket is the time from the first packet of a flow to its answer:
// SYN to SYN-ACK. The metrics are those of BenchmarkConnections.
func BenchmarkFirstPacket(b *testing.B) { benchmarkSizes(b, firstPackets) }

// BenchmarkEstablished sends a byte back and forth over a connection. The metrics are
// those of BenchmarkConnections.
func BenchmarkEstablished(b *testing.B) { benchmarkSizes(b, roundTrips) }

func benchmarkSizes(b *testing.B, d drive) {
	const dialed = 10
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			// All namespaces are made at the same time: they get slower with age, or
			// with how many there are, by up to 1%.
			l, noRules := serviceLane(b, n), newLane(b)
			m := race(b, lap{d, l.toServices(dialed)}, lap{d, l.toServices(n)}, lap{d, serviceLane(b, dialed).toServices(dialed)},
				lap{d, textLane(b, bareNAT()).toServices(dialed)}, lap{d, noRules.toEndpoints(dialed)}, lap{d, noRules.toEndpoints(n)})
			b.ReportMetric(m[0], "ns/op")
			b.ReportMetric(1e9/m[0], "/s")
			b.ReportMetric(m[2]/m[0], "of-10-services")
			b.ReportMetric(m[2]/m[1], "all-dialed-of-10")
			b.ReportMetric(m[4]/m[5], "all-dialed-no-rules")
			b.ReportMetric(m[3]/m[0], "of-bare-nat")
			b.ReportMetric(m[4]/m[0], "of-no-rules")
		})
	}
}
