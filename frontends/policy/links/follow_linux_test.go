package links

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// follower has what a tracker delivered.
type follower struct {
	tracker *Tracker

	mu sync.Mutex
	// gate is held while deliveries have to wait.
	gate  sync.Mutex
	links map[netip.Addr]model.Link
	// counts has how often each address was delivered.
	counts map[netip.Addr]int
	// errors has unexpected deliveries.
	errors []string
	log    bytes.Buffer
}

// follow starts a tracker in a namespace, and waits until it has delivered what exists.
func follow(t *testing.T, ns *nfttest.NS, buffer int) *follower {
	t.Helper()
	f := &follower{links: make(map[netip.Addr]model.Link), counts: make(map[netip.Addr]int)}
	tracker, err := New(Config{Deliver: f.deliver, Logger: slog.New(slog.NewTextHandler(&f.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if f.tracker = tracker; buffer != 0 {
		tracker.buffer = buffer
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ns.Do(func() error { return tracker.Run(ctx) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		for _, e := range f.errors {
			t.Error(e)
		}
		if t.Failed() {
			t.Logf("log:\n%s", f.log.String())
		}
	})
	select {
	case <-tracker.Synced():
	case <-time.After(aggregatortest.Wait):
		t.Fatal("tracker did not deliver what exists")
	}
	return f
}

func (f *follower) deliver(changes map[netip.Addr]model.Link) {
	f.gate.Lock()
	defer f.gate.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for addr, link := range changes {
		if f.links[addr] == link {
			f.errors = append(f.errors, fmt.Sprintf("%s: %v was delivered again", addr, link))
		}
		f.counts[addr]++
		f.links[addr] = link
		if link == (model.Link{}) {
			delete(f.links, addr)
		}
	}
}

// now returns the present links.
func (f *follower) now() map[netip.Addr]model.Link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.links)
}

// expect waits until the links are these.
func (f *follower) expect(t *testing.T, want map[string]model.Link) {
	t.Helper()
	parsed := make(map[netip.Addr]model.Link)
	for addr, link := range want {
		parsed[netip.MustParseAddr(addr)] = link
	}
	f.until(t, fmt.Sprintf("links %v", want), func(links map[netip.Addr]model.Link) bool { return maps.Equal(links, parsed) })
}

// expectOne waits until an address has a link.
func (f *follower) expectOne(t *testing.T, addr string, want model.Link) {
	t.Helper()
	f.until(t, fmt.Sprintf("link %v of %s", want, addr), func(links map[netip.Addr]model.Link) bool {
		return links[netip.MustParseAddr(addr)] == want
	})
}

func (f *follower) until(t *testing.T, what string, ok func(map[netip.Addr]model.Link) bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("links are %v", f.now())
		}
	}()
	aggregatortest.Eventually(t, what, func() bool { return ok(f.now()) })
}

// settled waits until the tracker has seen everything that happened before.
func (f *follower) settled(t *testing.T, host *nfttest.NS) {
	t.Helper()
	ip(t, host, "link add settled type veth peer name settled-peer", "link set settled up", "route add 192.0.2.77 dev settled")
	f.expectOne(t, "192.0.2.77", model.Link{Name: "settled"})
	ip(t, host, "link del settled")
	f.expectOne(t, "192.0.2.77", model.Link{})
}

// ip runs commands of ip(8).
func ip(t *testing.T, ns *nfttest.NS, commands ...string) {
	t.Helper()
	if _, err := ns.Output(strings.Join(commands, "\n"), "ip", "-batch", "-"); err != nil {
		t.Fatal(err)
	}
}

// routedPod makes a pod behind a veth pair, without an address.
func routedPod(t *testing.T, host *nfttest.NS, name string) *nfttest.NS {
	t.Helper()
	pod := nfttest.New(t)
	nfttest.Veth(t, nfttest.Port{NS: host, Name: name}, nfttest.Port{NS: pod, Name: "eth0"})
	return pod
}

// bridge makes br0 with the first address of 10.1.0.0/24 and fd00:1::/64. It has a MAC of its
// own: with that of a port, the kernel forgets the neighbours when the port goes.
func bridge(t *testing.T, host *nfttest.NS) {
	t.Helper()
	ip(t, host, "link add br0 address 02:00:00:00:00:01 type bridge", "addr add 10.1.0.1/24 dev br0", "addr add fd00:1::1/64 dev br0 nodad", "link set br0 up")
}

// bridgedPod makes a pod behind a port of br0, and sends packets to it.
func bridgedPod(t *testing.T, host *nfttest.NS, name string, addrs ...string) *nfttest.NS {
	t.Helper()
	pod := nfttest.New(t)
	var own []netip.Prefix
	for _, a := range addrs {
		addr := netip.MustParseAddr(a)
		own = append(own, netip.PrefixFrom(addr, map[bool]int{true: 24, false: 64}[addr.Is4()]))
	}
	nfttest.Veth(t, nfttest.Port{NS: host, Name: name}, nfttest.Port{NS: pod, Name: "eth0", Addrs: own})
	ip(t, host, "link set "+name+" master br0")
	for _, a := range addrs {
		send(t, host, a)
	}
	return pod
}

// send sends a UDP packet, for which the sender has to resolve the address.
func send(t *testing.T, from *nfttest.NS, to string) {
	t.Helper()
	if err := from.Do(func() error {
		c, err := net.Dial("udp", net.JoinHostPort(to, "9"))
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("x"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// forge announces IPv4 addresses from a pod with the pod's own MAC, until the host believes it.
func forge(t *testing.T, host, pod *nfttest.NS, addrs ...string) {
	t.Helper()
	var mac net.HardwareAddr
	announce := func() error {
		eth, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		mac = eth.HardwareAddr
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, a := range addrs {
			addr := netip.MustParseAddr(a).As4()
			// An ARP request for the address of br0.
			frame := bytes.Join([][]byte{bytes.Repeat([]byte{255}, 6), mac, {8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, mac, addr[:], make([]byte, 6), {10, 1, 0, 1}}, nil)
			if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: eth.Index}); err != nil {
				return err
			}
		}
		return nil
	}
	// The kernel ignores an announcement right after another one.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	aggregatortest.Eventually(t, fmt.Sprintf("the host believes the pod to have %s", addrs), func() bool {
		<-tick.C
		if err := pod.Do(announce); err != nil {
			t.Fatal(err)
		}
		neighbours := host.Run(t, "ip", "neigh", "show", "dev", "br0")
		return strings.Count(neighbours, mac.String()) >= len(addrs) && strings.Contains(neighbours, addrs[len(addrs)-1]+" lladdr "+mac.String())
	})
}
