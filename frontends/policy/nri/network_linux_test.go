package nri_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// network is a node with three pods, each a network namespace that answers TCP on port 8080.
// The node has number 0.
type network struct {
	node *nfttest.NS
	pods [4]*nfttest.NS
}

const (
	tcpPort = 8080
	udpPort = 9999
	// patience is how long a connection waits: what is dropped is never answered.
	patience = 150 * time.Millisecond
)

// podAddr is the address of a pod: family 0 is IPv4.
func podAddr(family, i int) netip.Addr {
	return netip.MustParseAddr([]string{fmt.Sprintf("10.244.%d.2", i), fmt.Sprintf("fd00:10:244:%d::2", i)}[family])
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces)
	n := &network{node: nfttest.New(t)}
	n.pods[0] = n.node
	for i := 1; i < len(n.pods); i++ {
		n.pods[i] = nfttest.New(t)
		var own, gateway []netip.Prefix
		for f, bits := range []int{24, 64} {
			a := podAddr(f, i)
			own, gateway = append(own, netip.PrefixFrom(a, bits)), append(gateway, netip.PrefixFrom(a.Prev(), bits))
		}
		nfttest.Veth(t, nfttest.Port{NS: n.node, Name: fmt.Sprint("pod", i), Addrs: gateway}, nfttest.Port{NS: n.pods[i], Name: "eth0", Addrs: own})
		n.pods[i].Route(t, netip.MustParsePrefix("0.0.0.0/0"), gateway[0].Addr())
		n.pods[i].Route(t, netip.MustParsePrefix("::/0"), gateway[1].Addr())
		n.serve(t, i)
	}
	for path, value := range map[string]string{"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1", "ipv4/conf/all/send_redirects": "0"} {
		if err := n.node.Do(func() error { return os.WriteFile("/proc/sys/net/"+path, []byte(value), 0) }); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i < len(n.pods); i++ {
		for f := range 2 {
			poll(t, fmt.Sprint("pod ", i), func() bool { return n.answers(f, i, i%3+1) && n.answers(f, 0, i) })
		}
	}
	return n
}

// serve accepts connections in a pod, and closes them.
func (n *network) serve(t *testing.T, i int) {
	t.Helper()
	var l net.Listener
	if err := n.pods[i].Do(func() (err error) {
		l, err = net.Listen("tcp", fmt.Sprintf("[::]:%d", tcpPort))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
}

// answers reports whether a pod accepts a connection from another one.
func (n *network) answers(family, from, to int) bool {
	return n.pods[from].Do(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c, err := new(net.Dialer).DialContext(ctx, "tcp", netip.AddrPortFrom(podAddr(family, to), tcpPort).String())
		if err == nil {
			_ = c.Close()
		}
		return err
	}) == nil
}

// watch is a sender of a UDP packet every millisecond, with a receiver.
type watch struct {
	sent, received atomic.Int64
	stop           func()
}

// watch sends packets between two pods, until the function that it returns is called.
func (n *network) watch(t *testing.T, from, to int) *watch {
	t.Helper()
	w := &watch{}
	var out net.Conn
	var in net.PacketConn
	if err := n.pods[to].Do(func() (err error) {
		in, err = net.ListenPacket("udp", fmt.Sprintf(":%d", udpPort))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := n.pods[from].Do(func() (err error) {
		out, err = net.Dial("udp", netip.AddrPortFrom(podAddr(0, to), udpPort).String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for b := make([]byte, 8); ; {
			if _, _, err := in.ReadFrom(b); err != nil {
				return
			}
			w.received.Add(1)
		}
	})
	wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				// A refusal of the receiver, which has gone, is reported here.
				if _, err := out.Write([]byte("x")); err == nil {
					w.sent.Add(1)
				}
			}
		}
	})
	w.stop = sync.OnceFunc(func() { cancel(); _, _ = out.Close(), in.Close(); wg.Wait() })
	t.Cleanup(w.stop)
	return w
}

// none ends the packets, and expects that none arrived.
func (w *watch) none(t *testing.T) {
	t.Helper()
	w.stop()
	if n := w.received.Load(); n > 0 || w.sent.Load() == 0 {
		t.Errorf("%d of %d packets arrived, want none", n, w.sent.Load())
	}
	t.Logf("%d packets were dropped", w.sent.Load())
}

// mayArrive ends the packets, and expects that some arrived.
func (w *watch) mayArrive(t *testing.T) {
	t.Helper()
	poll(t, "a packet", func() bool { return w.received.Load() > 0 })
	w.stop()
}
