package services

import (
	"fmt"
	"regexp"
	"strings"
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

// variantServices is how many Services variants are compared at. All are dialed.
const variantServices = 1000

// rewrite makes another ruleset from a listed one.
type rewrite func(b *testing.B, rules string) string

// swap replaces texts, given in pairs. Each must be there.
func swap(pairs ...string) rewrite {
	return func(b *testing.B, rules string) string {
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(rules, pairs[i]) {
				b.Fatalf("the rules have no %q:\n%s", pairs[i], rules[strings.Index(rules, "\tchain"):])
			}
			rules = strings.ReplaceAll(rules, pairs[i], pairs[i+1])
		}
		return rules
	}
}

// sequence makes one edit after the other.
func sequence(edits ...rewrite) rewrite {
	return func(b *testing.B, rules string) string {
		for _, c := range edits {
			rules = c(b, rules)
		}
		return rules
	}
}

// chainText finds a chain. Its rules are the first group.
func chainText(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)\tchain ` + name + ` \{\n(.*?)\t\}\n`)
}

// without removes chains, with adds text at the end of the table.
func without(names ...string) rewrite {
	return func(b *testing.B, rules string) string {
		for _, n := range names {
			rules = swap(chainText(n).FindString(rules), "")(b, rules)
		}
		return rules
	}
}

func with(text string) rewrite {
	return func(_ *testing.B, rules string) string {
		return strings.TrimSuffix(strings.TrimSpace(rules), "}") + text + "}\n"
	}
}

// Parts of the ruleset as nft(8) lists it.
const (
	masqueradeRule = "\t\tip saddr != 10.244.0.0/16 ip daddr @cluster-ips jump mark-for-masquerade\n"
	servicesRule   = "\t\tip daddr . meta l4proto . th dport vmap @services\n"
	hairpinRule    = "\t\tct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin masquerade fully-random\n"
	countRule      = "\t\tip daddr . meta l4proto . th dport @service-connections\n"
	servicesJump   = "\t\tjump services\n"
	filterJump     = "\t\tct state new jump "
	portProtocols  = "{ tcp, udp, sctp }"

	firewallHooks = `	chain firewall-prerouting { type filter hook prerouting priority dstnat - 10; meta l4proto udp ct direction original jump firewall; meta l4proto != udp ct state new jump firewall; }
	chain firewall-output { type filter hook output priority -110; meta l4proto udp ct direction original jump firewall; meta l4proto != udp ct state new jump firewall; }
`
	inputHook = "\tchain filter-input { type filter hook input priority filter; ct state new jump unserved-input; }\n"
)

// variants are other ways to write the rules that weft renders.
var variants = []struct {
	name string
	make rewrite
}{
	// What differs here is noise.
	{"same", sequence()},
	{"hooks-always", with(firewallHooks + inputHook)},
	{"firewall-always", with(firewallHooks)},
	{"firewall-in-nat", swap(servicesJump, "\t\tjump firewall\n"+servicesJump)},
	{"filter-accepts-established", swap(filterJump, "\t\tct state established,related accept\n\t\tjump ")},
	{"filter-without-state", swap(filterJump, "\t\tjump ")},
	{"filter-status-on-hook", swap(filterJump+"unserved\n", "\t\tct state new ct status ! dnat jump unserved\n")},
	{"filter-after-others", swap("priority filter;", "priority filter + 10;")},
	{"unserved-in-nat", sequence(without("filter-forward", "filter-output"), swap(servicesJump, servicesJump+"\t\tjump unserved\n"))},
	{"mark-in-pick", swap(masqueradeRule, "", "\tchain pick-10 {\n", "\tchain pick-10 {\n\t\tip saddr != 10.244.0.0/16 jump mark-for-masquerade\n")},
	{"cluster-ips-first", swap(servicesRule, "\t\tip daddr @cluster-ips ip daddr . meta l4proto . th dport vmap @services\n")},
	{"services-inline", func(b *testing.B, rules string) string {
		return sequence(without("services"), swap(servicesJump, chainText("services").FindStringSubmatch(rules)[1]))(b, rules)
	}},
	{"numgen-inc", swap("numgen random mod 10 ", "numgen inc mod 10 ")},
	{"jhash", swap("numgen random mod 10 map", "jhash ip saddr . tcp sport mod 10 map", portProtocols, "tcp")},
	{"inet-table", swap("table ip weft", "table inet weft")},
	{"map-per-protocol", mapPerProtocol},
	{"chain-per-service", chainPerService},
	{"without-hairpin", swap(hairpinRule, "")},
	{"without-counters", swap(countRule, "")},
	{"count-in-services", swap(countRule, "", "th dport : verdict\n\t\telements", "th dport : verdict\n\t\tcounter\n\t\telements")},
	{"count-endpoints", swap(": ip daddr . th dport\n", ": ip daddr . th dport\n\t\tcounter\n")},
}

// mapPerProtocol leaves the protocol out of keys.
func mapPerProtocol(b *testing.B, rules string) string {
	for _, m := range []string{"services", "endpoints"} {
		text := regexp.MustCompile(`(?s)\tmap ` + m + ` \{.*?\n\t\}\n`).FindString(rules)
		rules = swap(text, strings.NewReplacer(" . tcp . ", " . ", "meta l4proto . ", "").Replace(text))(b, rules)
	}
	return swap(servicesRule, "\t\tmeta l4proto tcp ip daddr . th dport vmap @services\n",
		portProtocols+" dnat ip to ip daddr . meta l4proto . th dport . ", "tcp dnat ip to ip daddr . th dport . ")(b, rules)
}

// chainPerService has a chain for each Service and one for each endpoint, as
// kube-proxy does.
func chainPerService(b *testing.B, rules string) string {
	var chains, elements strings.Builder
	for i := range variantServices {
		slots := make([]string, laneEndpoints)
		for j := range slots {
			fmt.Fprintf(&chains, "\tchain endpoint-%d-%d { meta l4proto tcp dnat to %s; }\n", i, j, laneEndpoint(i, j))
			slots[j] = fmt.Sprintf("%d : goto endpoint-%d-%d", j, i, j)
		}
		fmt.Fprintf(&chains, "\tchain service-%d { ip saddr != 10.244.0.0/16 jump mark-for-masquerade; numgen random mod %d vmap { %s }; }\n",
			i, laneEndpoints, strings.Join(slots, ", "))
		fmt.Fprintf(&elements, "add element ip weft services { %s . tcp . 80 : goto service-%d }\n", laneService(i).Addr(), i)
	}
	rules = regexp.MustCompile(`(?s)(map services \{.*?)\t\telements = \{.*?\}`).ReplaceAllString(rules, "$1")
	return sequence(swap(masqueradeRule, ""), with(chains.String()))(b, rules) + elements.String()
}

// BenchmarkVariants compares other ways to write the rules with those that weft
// renders. Each metric is the rate with the variant by that with the rules as they
// are, in the same run: more than 1 is better than what weft does.
//
//	service      new connections of pods through ClusterIPs
//	outside      new connections of others through ClusterIPs, masqueraded
//	bystander    new connections of pods through the node to no Service
//	node         new connections of pods to the node itself
//	established  round trips over a connection through a ClusterIP
//	node-est     round trips over a connection to the node itself
func BenchmarkVariants(b *testing.B) {
	rules, _, _ := strings.Cut(serviceLane(b, variantServices).node.ListRuleset(b), "table ip6 weft")
	rules = regexp.MustCompile(`(?m) # progname.*$|^\tflags owner\n`).ReplaceAllString(rules, "")
	classes := []struct {
		name  string
		drive drive
		path  func(*lane) *path
	}{
		{"service", connections, func(l *lane) *path { return l.toServices(variantServices) }},
		{"outside", connections, func(l *lane) *path { return l.fromOutside(variantServices) }},
		{"bystander", connections, func(l *lane) *path { return l.toEndpoints(variantServices) }},
		{"node", connections, (*lane).toNode},
		{"established", roundTrips, func(l *lane) *path { return l.toServices(variantServices) }},
		{"node-est", roundTrips, (*lane).toNode},
	}
	for _, v := range variants {
		b.Run(v.name, func(b *testing.B) {
			present, other := textLane(b, rules), textLane(b, v.make(b, rules))
			var laps []lap
			for _, c := range classes {
				laps = append(laps, lap{c.drive, c.path(present)}, lap{c.drive, c.path(other)})
			}
			m := race(b, laps...)
			for i, c := range classes {
				b.ReportMetric(m[2*i]/m[2*i+1], c.name)
			}
			b.ReportMetric(m[1], "ns/op")
		})
	}
}
