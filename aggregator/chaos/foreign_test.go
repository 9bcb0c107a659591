package chaos

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// keeper is a NAT table of somebody else. Without any NAT chain and any rule that
// uses conntrack in the namespace the kernel no longer tracks and translates the
// connections that it knows, and no aggregator could bring the stream back: where a foreign process deletes the
// service's table (with ownership off, or while weft is down) the stream
// survives because another user of NAT is there, as on every node with a
// container runtime. With ownership on and weft running it is not needed.
const keeper = "table ip keeper {\n\tchain post {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n\t\tip saddr 10.206.0.0/16 masquerade\n\t}\n}\n"

// foreign is the process that is not weft's: nft(8), run anew for each change.
type foreign struct {
	// tables are the foreign process's own, as they must stay.
	tables ruleset
}

// nft runs a script in the node's namespace.
func (c *conductor) nft(script string) error {
	_, err := c.node.Output(script, "nft", "-f", "-")
	outcome := "done"
	if err != nil {
		outcome = err.Error()
	}
	c.note("nft %q: %s", script, outcome)
	return err
}

// reset makes the foreign process's own tables anew, with an element that
// changes.
func (fo *foreign) reset(c *conductor, prefix string) {
	tables := keeper + fmt.Sprintf("table ip alien {\n\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 10.204.0.%d }\n\t}\n}\n", c.rng.IntN(200))
	c.must(c.nft(prefix + tables))
	// They are written as nft lists them. Listing them now would not do: nft 1.0.6
	// says things twice when somebody commits while it reads.
	var err error
	fo.tables, err = parseListing(tables)
	c.must(err)
}

// interfere changes what is not its own, while the aggregator runs.
func (c *conductor) interfere() {
	c.sum.foreign++
	if c.owned {
		c.foreign.forbidden(c)
		return
	}
	if c.rng.IntN(2) == 0 {
		c.foreign.damage(c)
		return
	}
	// Alone, to see how long a repair takes.
	c.quiet()
	want := c.expected()
	c.foreign.damage(c)
	began := time.Now()
	for c.compare(want) != "" {
		if time.Since(began) > patience {
			c.fatal("after %v what a foreign process changed is not repaired:\n%s", patience, c.compare(want))
		}
		c.pump(time.After(2 * time.Millisecond))
	}
	c.sum.slowestRepair = max(c.sum.slowestRepair, time.Since(began))
}

// forbidden does what the kernel must refuse, as weft owns the tables.
func (fo *foreign) forbidden(c *conductor) {
	if c.rng.IntN(4) == 0 {
		// A flush passes by what is owned. It takes the keeper along: weft's
		// own NAT chain keeps the stream alive.
		fo.reset(c, "flush ruleset\n")
		return
	}
	script := fo.script(c)
	err := c.nft(script)
	switch {
	case err == nil:
		c.fatal("a foreign process may do this to an owned table: %s", script)
	case strings.Contains(err.Error(), "Operation not permitted"):
		c.sum.forbidden++
	case strings.Contains(err.Error(), "No such file or directory"):
		// An update that is on its way has taken it away.
	default:
		c.fatal("want the kernel's refusal: %v", err)
	}
}

// damage changes one of weft's tables.
func (fo *foreign) damage(c *conductor) {
	if c.nft(fo.script(c)) == nil {
		c.sum.damages++
		c.damaged, c.unsteady = true, true
	}
}

// wipe deletes all that weft has, as a reboot does.
func (fo *foreign) wipe(c *conductor) { fo.reset(c, "flush ruleset\n") }

// script draws a change of one of weft's tables.
func (fo *foreign) script(c *conductor) string {
	merged := merge(c.fragments())
	ids := sorted(merged)
	id := ids[c.rng.IntN(len(ids))]
	var chains, sets, elements []string
	for _, l := range merged[id] {
		what, _, _ := strings.Cut(l, " = ")
		words := strings.SplitN(what, " ", 4)
		switch {
		case len(words) == 2 && words[0] == "chain":
			chains = append(chains, words[1])
		case len(words) == 2:
			sets = append(sets, words[1])
		case len(words) == 4 && words[2] == "element":
			elements = append(elements, words[1]+" { "+words[3]+" }")
		}
	}
	draw := func(from []string) string { return from[c.rng.IntN(len(from))] }
	switch n := c.rng.IntN(9); {
	case n == 0:
		return "delete table " + id
	case n == 1:
		return "flush table " + id
	case n == 2 && len(chains) > 0:
		return "flush chain " + id + " " + draw(chains)
	case n == 3 && len(chains) > 0:
		return "add rule " + id + " " + draw(chains) + " ip saddr 10.205.0.1 counter comment \"alien\""
	case n == 4 && len(chains) > 0:
		return "insert rule " + id + " " + draw(chains) + " ip saddr 10.205.0.2 drop"
	case n == 5 && len(sets) > 0:
		return "flush set " + id + " " + draw(sets)
	case n == 6 && len(elements) > 0:
		return "delete element " + id + " " + draw(elements)
	case n == 7:
		return "add chain " + id + " alien"
	default:
		return "add set " + id + " alien { type ipv4_addr; elements = { 10.205.0.3 }; }"
	}
}

// checkDurable compares the kernel after everything was lost and no publisher
// has come back: it holds what is durable.
func (c *conductor) checkDurable() {
	c.t.Helper()
	var durable []held
	for _, h := range c.fragments() {
		if h.content.GetLifetime() == weftv1.Lifetime_LIFETIME_DURABLE {
			durable = append(durable, h)
		}
	}
	want := merge(durable)
	for id, lines := range c.foreign.tables {
		want[id] = lines
	}
	c.sum.durable += len(durable)
	if d := c.compare(want); d != "" {
		c.fatal("after everything was lost the %d durable fragments are not back:\n%s", len(durable), d)
	}
}

// stream is a TCP connection through the service: the client sends numbers, the
// server sends them back, and each must come back in its place.
type stream struct {
	conn net.Conn
	stop chan struct{}
	wg   sync.WaitGroup

	sent, received atomic.Uint64
	// failed gets why it broke, once.
	failed chan error
}

// wires joins a client and a server to the node, which forwards between them.
func wires(t *testing.T, node *nfttest.NS) (client, server *nfttest.NS) {
	t.Helper()
	client, server = nfttest.New(t), nfttest.New(t)
	at := func(ns *nfttest.NS, name, addr string) nfttest.Port {
		return nfttest.Port{NS: ns, Name: name, Addrs: []netip.Prefix{netip.MustParsePrefix(addr)}}
	}
	nfttest.Veth(t, at(node, "client0", "192.168.77.1/24"), at(client, "eth0", "192.168.77.2/24"))
	nfttest.Veth(t, at(node, "server0", "192.168.78.1/24"), at(server, "eth0", "192.168.78.2/24"))
	everywhere := netip.MustParsePrefix("0.0.0.0/0")
	client.Route(t, everywhere, netip.MustParseAddr("192.168.77.1"))
	server.Route(t, everywhere, netip.MustParseAddr("192.168.78.1"))
	if err := node.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	}); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// openStream connects the client to the service and begins to send.
func openStream(t *testing.T, client, server *nfttest.NS) *stream {
	t.Helper()
	s := &stream{stop: make(chan struct{}), failed: make(chan error, 1)}
	var l net.Listener
	if err := server.Do(func() (err error) { l, err = net.Listen("tcp4", "192.168.78.2:8080"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go echo(l)
	if err := client.Do(func() (err error) { s.conn, err = net.DialTimeout("tcp4", "10.96.0.1:80", patience); return err }); err != nil {
		t.Fatalf("connect through the service: %v", err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	s.wg.Go(func() { s.report("send", s.send()) })
	s.wg.Go(func() { s.report("receive", s.receive()) })
	return s
}

// echo serves one connection.
func echo(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.Copy(conn, conn)
}

func (s *stream) report(what string, err error) {
	if err == nil {
		return
	}
	select {
	case s.failed <- fmt.Errorf("%s, %d bytes sent, %d received: %w", what, s.sent.Load(), s.received.Load(), err):
	default:
	}
}

// send writes 1 KiB of numbers every millisecond until it is stopped.
func (s *stream) send() error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	block := make([]byte, 1024)
	for n := uint64(0); ; {
		for i := 0; i < len(block); i += 8 {
			binary.BigEndian.PutUint64(block[i:], n)
			n++
		}
		if err := s.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := s.conn.Write(block); err != nil {
			return err
		}
		s.sent.Add(uint64(len(block)))
		select {
		case <-s.stop:
			return s.conn.(*net.TCPConn).CloseWrite()
		case <-tick.C:
		}
	}
}

// receive reads the numbers until the server has sent all of them back.
func (s *stream) receive() error {
	in := bufio.NewReader(s.conn)
	word := make([]byte, 8)
	for n := uint64(0); ; n++ {
		if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := io.ReadFull(in, word); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if got := binary.BigEndian.Uint64(word); got != n {
			return fmt.Errorf("word %d is %d", n, got)
		}
		s.received.Add(8)
	}
}

// check fails the run once the stream has broken.
func (s *stream) check(c *conductor) {
	select {
	case err := <-s.failed:
		c.fatal("the stream through the service broke: %v", err)
	default:
	}
}

// finish ends the stream; every byte must have come back.
func (s *stream) finish(c *conductor) uint64 {
	close(s.stop)
	s.wg.Wait()
	s.check(c)
	if s.sent.Load() != s.received.Load() {
		c.fatal("%d bytes were sent through the service, %d came back", s.sent.Load(), s.received.Load())
	}
	return s.received.Load()
}
