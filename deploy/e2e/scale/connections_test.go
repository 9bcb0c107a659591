package scale

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

const (
	// turnsOfPath is how often each path has its turn, and perTurn the connections of a turn.
	turnsOfPath, perTurn = 40, 50
	// noProxy is a node without rules and conntrack, whose client dials the endpoints.
	noProxy = "no proxy"
)

// TestConnections measures new TCP connections of a pod through ClusterIPs of ever more Services, through
// the rules of each proxy of -scale.connect at the same time, in turns.
//
// Each proxy has its own node. When all its Services answer the proxy is stopped (SIGSTOP), so that only
// the kernel is measured. One thread is both client and server: a veth hands packets on within the system
// call that sends them, so no scheduler is in the figures. All Services are dialed, in an order that is of
// no use to the processor's caches.
func TestConnections(t *testing.T) {
	if *connectFlag == "" {
		t.Skip("no -scale.connect")
	}
	names := append(list(connectFlag), noProxy)
	var table strings.Builder
	for _, text := range list(connectSizesFlag) {
		s, err := parseSize(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(text, func(t *testing.T) {
			paths, err := connectPaths(t, names, s)
			if err != nil {
				t.Fatal(err)
			}
			if err := race(paths); err != nil {
				t.Fatal(err)
			}
			floor := quantile(paths[len(paths)-1].whole, 0.5)
			for _, p := range paths {
				whole := quantile(p.whole, 0.5)
				fmt.Fprintf(&table, "| %s | %s | %.0f | %.1f | %.1f | %.2f |\n", text, p.name, float64(time.Second)/float64(whole),
					us(quantile(p.answer, 0.5)), us(quantile(p.answer, 0.99)), float64(floor)/float64(whole))
			}
		})
	}
	fmt.Fprintf(os.Stdout, "\n| Services x endpoints | rules | connections/s on one core | SYN to SYN-ACK, µs | 99th, µs | of no proxy |\n| --- | --- | --- | --- | --- | --- |\n%s\n", &table)
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// connectPath leads from a pod through its node's rules.
type connectPath struct {
	name          string
	node          *lab.Node
	pod           *lab.Pod
	to            []netip.AddrPort
	server        int
	next          int
	whole, answer []time.Duration
}

// connectPaths starts a proxy for each name, and stops it when it is in sync.
func connectPaths(t *testing.T, names []string, s size) ([]*connectPath, error) {
	ctx := t.Context()
	network, err := newNetwork(ctx, len(names))
	if err != nil {
		return nil, err
	}
	t.Cleanup(network.Close)
	a, err := startAPI(ctx, network.Control, "connect-"+s.String())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = a.stop() })
	pop := newPopulation(s)
	if err := a.fill(ctx, pop, network.Nodes[0].Addresses.V4); err != nil {
		return nil, err
	}
	var paths []*connectPath
	for i, name := range names {
		p := &connectPath{name: name, node: network.Nodes[i]}
		paths = append(paths, p)
		if p.pod, err = p.node.NewPod(fmt.Sprintf("client-%d", i)); err != nil {
			return nil, err
		}
		if err := p.pod.Sysctl("net/ipv4/tcp_no_metrics_save", "1"); err != nil {
			return nil, err
		}
		for i := range s.services {
			to := netip.AddrPortFrom(clusterIP(i), port)
			if name == noProxy {
				to = netip.AddrPortFrom(address(pop.slices[i].Endpoints[0]), targetPort)
			}
			p.to = append(p.to, to)
		}
		if name == noProxy {
			continue
		}
		if err := p.follow(ctx, t, a, s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	// From here on this thread answers, and no goroutine.
	if err := network.answers.Close(); err != nil {
		return nil, err
	}
	fd, err := listen(network.Control)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	for _, p := range paths {
		p.server = fd
	}
	return paths, nil
}

func (p *connectPath) follow(ctx context.Context, t *testing.T, a *api, s size) error {
	proxy, err := newProxy(ctx, p.node, a, p.name, s)
	if err != nil {
		return err
	}
	if err := proxy.start(); err != nil {
		return err
	}
	t.Cleanup(func() {
		_ = unix.Kill(proxy.process.PID(), unix.SIGCONT)
		_ = proxy.process.Kill()
	})
	if err := answering(ctx, p.node, s, connectPatience); err != nil {
		return errors.Join(err, proxy.process.Err())
	}
	return unix.Kill(proxy.process.PID(), unix.SIGSTOP)
}

// connectPatience is long: iptables with 20,000 Services needs minutes.
const connectPatience = 20 * time.Minute

// race gives the paths turns, there and back, so that none is always the second.
func race(paths []*connectPath) error {
	for turn := range turnsOfPath {
		for _, p := range paths {
			if p.name == noProxy {
				continue
			}
			// Closed flows stay in conntrack for seconds.
			if err := p.node.Do(flushFlows); err != nil {
				return fmt.Errorf("flush flows: %w", err)
			}
		}
		for i := range paths {
			if turn%2 == 1 {
				i = len(paths) - 1 - i
			}
			if err := paths[i].pod.Do(paths[i].dials); err != nil {
				return fmt.Errorf("%s: %w", paths[i].name, err)
			}
		}
	}
	return nil
}

func flushFlows() error {
	h, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.ConntrackTableFlush(netlink.ConntrackTable)
}

// dials makes the connections of a turn from the thread's namespace.
func (p *connectPath) dials() error {
	for range perTurn {
		to := p.to[p.next*7919%len(p.to)]
		p.next++
		began := time.Now()
		client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		// Closing resets: nothing is left to wait for late packets.
		err = unix.SetsockoptLinger(client, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		sent := time.Now()
		if err = errors.Join(err, unix.Connect(client, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})); err != nil {
			unix.Close(client)
			return fmt.Errorf("connect to %s: %w", to, err)
		}
		p.answer = append(p.answer, time.Since(sent))
		server, _, err := unix.Accept4(p.server, unix.SOCK_CLOEXEC)
		if err != nil {
			unix.Close(client)
			return fmt.Errorf("accept connection to %s: %w", to, err)
		}
		unix.Close(client)
		unix.Close(server)
		p.whole = append(p.whole, time.Since(began))
	}
	return nil
}

// listen opens the endpoints' socket in the host's namespace. A lost packet ends its wait.
func listen(h *lab.Host) (fd int, err error) {
	err = h.Do(func() error {
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return errors.Join(
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
			unix.Bind(fd, &unix.SockaddrInet4{Port: targetPort}), unix.Listen(fd, 64))
	})
	return fd, err
}
