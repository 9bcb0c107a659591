package render

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// lane is a client and a server that are pods of a node, each a network namespace. One
// thread plays both ends: veth hands packets on within the system call that sends them, so
// no wait for the scheduler is in what is measured.
type lane struct {
	client, server, node *nfttest.NS
	// ends are the sockets of a connection.
	ends [2]int
}

// newLane connects the ends over a node with rules.
func newLane(b *testing.B, rules string) *lane {
	b.Helper()
	nfttest.Require(b, nfttest.Namespaces, nfttest.NFT)
	l := &lane{client: nfttest.New(b), server: nfttest.New(b), node: nfttest.New(b)}
	for i, ns := range []*nfttest.NS{l.client, l.server} {
		at := func(host byte) []netip.Prefix {
			return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i + 1), host}), 24)}
		}
		nfttest.Veth(b, nfttest.Port{NS: l.node, Name: fmt.Sprintf("pod%d", i+1), Addrs: at(1)}, nfttest.Port{NS: ns, Name: "eth0", Addrs: at(2)})
		ns.Route(b, defaults[0], at(1)[0].Addr())
	}
	l.node.Run(b, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
	l.node.Nft(b, rules)
	l.connect(b)
	return l
}

func (l *lane) connect(b *testing.B) {
	b.Helper()
	var listener int
	must(b, l.server.Do(func() (err error) {
		if listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		if err = unix.Bind(listener, &unix.SockaddrInet4{Port: 8080}); err != nil {
			return err
		}
		return unix.Listen(listener, 1)
	}))
	defer unix.Close(listener)
	must(b, l.client.Do(func() (err error) {
		if l.ends[0], err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return unix.Connect(l.ends[0], &unix.SockaddrInet4{Addr: labAddr(0, 2).As4(), Port: 8080})
	}))
	var err error
	l.ends[1], _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC)
	must(b, err)
	b.Cleanup(func() { _, _ = unix.Close(l.ends[0]), unix.Close(l.ends[1]) })
}

// roundTrips sends a byte there and back n times, and returns what each took.
func (l *lane) roundTrips(n int, out []time.Duration) ([]time.Duration, error) {
	b := make([]byte, 1)
	for range n {
		began := time.Now()
		for i, from := range l.ends {
			if _, err := unix.Write(from, b); err != nil {
				return nil, err
			}
			if _, err := unix.Read(l.ends[1-i], b); err != nil {
				return nil, err
			}
		}
		out = append(out, time.Since(began))
	}
	return out, nil
}

// laneRules returns the ruleset of a node both of whose pods have policies, after a change
// of the fixture.
func laneRules(b *testing.B, edit func(f *fixture)) string {
	f := newFixture(b)
	f.set("peers", labAddr(0, 1).String(), labAddr(0, 2).String())
	allow := []model.Rule{{Pods: []model.SetID{"peers"}, Ports: ports("tcp 8080", "udp 53")}}
	f.policy("lab/p", allow, allow)
	for i := 1; i <= 2; i++ {
		f.pod(fmt.Sprintf("lab/%d", i), labAddr(0, i).String(), []string{"lab/p"}, []string{"lab/p"})
	}
	edit(f)
	f.finish()
	return f.rules.String()
}

// tracking makes the kernel track connections, as it does for Services: a rule that needs
// that is enough, and this one sees first packets only.
const tracking = "table ip tracking {\n\tchain nat {\n\t\ttype nat hook prerouting priority dstnat;\n\t\tct state new accept\n\t}\n}\n"

// BenchmarkRoundTrip sends a byte back and forth over an established connection between
// two pods with policies. ns/op is the median. The ratios are of rates in the same run,
// more is better: of-no-policies is that to a node that only tracks connections.
//
//	policies           the connection is not rechecked, and no other is
//	interfaces         the same, and the interfaces of both pods are known
//	recheck-elsewhere  connections of other pods are rechecked
//	rechecked          the connection is rechecked: every packet is judged
//	all-rechecked      all connections are
//	same               no policies either: what differs is noise
func BenchmarkRoundTrip(b *testing.B) {
	names := []string{"no-policies", "same", "policies", "interfaces", "recheck-elsewhere", "rechecked", "all-rechecked"}
	rules := []string{
		tracking, tracking,
		tracking + laneRules(b, func(*fixture) {}),
		tracking + laneRules(b, func(f *fixture) {
			for i := 1; i <= 2; i++ {
				f.pods[types.UID(fmt.Sprintf("lab/%d", i))].Link.Name = fmt.Sprintf("pod%d", i)
			}
		}),
		tracking + laneRules(b, func(f *fixture) { f.narrowed = addresses("10.244.9.9") }),
		tracking + laneRules(b, func(f *fixture) { f.narrowed = addresses("10.244.1.2") }),
		tracking + laneRules(b, func(f *fixture) { f.narrowed = addresses(many(maxRechecked + 1)...) }),
	}
	lanes := make([]*lane, len(rules))
	for i := range rules {
		lanes[i] = newLane(b, rules[i])
	}
	took := make([][]time.Duration, len(lanes))
	const turns, perTurn = 8, 50
	for b.Loop() {
		for turn := range turns {
			for i := range lanes {
				if turn%2 == 1 {
					// There and back, so that none is always the second.
					i = len(lanes) - 1 - i
				}
				var err error
				took[i], err = lanes[i].roundTrips(perTurn, took[i])
				must(b, err)
			}
		}
	}
	median := make([]float64, len(lanes))
	for i, all := range took {
		slices.Sort(all)
		median[i] = float64(all[len(all)/2].Nanoseconds())
	}
	b.ReportMetric(median[2], "ns/op")
	for i, name := range names[1:] {
		b.ReportMetric(median[0]/median[i+1], name+"-ratio")
	}
}
