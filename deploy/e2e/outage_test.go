package e2e

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

var outage = flag.Duration("e2e.outage", time.Minute, "how long fault/api-server-away keeps the API server down")

// outageSlack is the rest of fault/api-server-away's time.
const outageSlack = 6 * time.Minute

// faultOutage: during a long outage of the API server every request is answered, also on nodes where
// weft is killed and starts, which changes no rule. Changes follow the next successful attempt to connect.
//
// Behaviour: 131, 132.
func faultOutage(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, e.web[:3]...)
	var loads []*lab.Stream
	for _, c := range e.clients {
		for _, network := range []string{"tcp", "udp"} {
			e.spread(t, c, network, s.vip(false), e.web[:3]...)
			e.spread(t, c, network, s.vip(true), e.web[:3]...)
			loads = append(loads, load(c.Namespace, network, s.vip(network == "udp"), 20))
		}
	}
	traffic := lab.StartTraffic(e.ctx, loads...)
	over := time.NewTimer(*outage)
	defer over.Stop()
	if err := e.cluster.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	// These have never seen the API server, and must keep the rules.
	restarted, before := e.daemons[1:], make(map[*daemon]map[string]string)
	for _, d := range restarted {
		before[d] = d.objects(t, e)
		if err := d.kill(); err != nil {
			t.Fatal(err)
		}
		if err := d.start(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-over.C:
	case <-e.ctx.Done():
		t.Fatal(e.ctx.Err())
	}
	for _, d := range restarted {
		if lost := changed(before[d], d.objects(t, e)); len(lost) > 0 {
			t.Errorf("a weft without an API server rewrote %d objects of %s:\n%s", len(lost), d.node.Name(), strings.Join(lost, "\n"))
		}
	}
	if err := e.cluster.StartAPIServer(e.ctx); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	// Written by hand: the controller's own watches take up to a minute to return.
	s.endpoints(t, e.web...)
	fresh := e.webService(t, "fresh", nil)
	fresh.endpoints(t, e.web...)
	for i, c := range e.clients {
		within(t, e.ctx, catchUp, fmt.Sprintf("changes after the outage reach %s", c.Name()), func() error {
			if err := e.only(c, "tcp", s.vip(false), 24, e.web...); err != nil {
				return err
			}
			return e.only(c, "udp", fresh.vip(true), 24, e.web...)
		})
		t.Logf("node-%d had the changes %s after the API server's return", i+1, time.Since(back).Round(100*time.Millisecond))
	}
	report(t, traffic)
	fresh.endpoints(t, e.web[0])
	e.spread(t, e.clients[2], "tcp", fresh.vip(false), e.web[0])
}

// catchUp bounds a change after the API server is back. weft backs off as client-go does: up to 30 s,
// plus as much again at random, and twice if the server was not ready at the first attempt.
const catchUp = 3 * time.Minute

// reconnect bounds a change after a partition: TCP retransmits after at most the time that it has
// already waited.
const reconnect = 2 * partition

const partition = 20 * time.Second

// faultPartition: a node without the API server continues with its state, and makes up for all changes
// afterwards.
func faultPartition(t *testing.T, e *env) {
	stays := e.webService(t, "stays", nil)
	stays.endpoints(t, e.web[:2]...)
	goes := e.webService(t, "goes", nil)
	goes.endpoints(t, e.web...)
	cut, c := e.lab.Nodes[1], e.clients[1]
	e.spread(t, c, "tcp", stays.vip(false), e.web[:2]...)
	e.spread(t, c, "tcp", goes.vip(false), e.web...)
	flow := e.openUDP(t, c, goes.vip(false), 40300)
	traffic := lab.StartTraffic(e.ctx, load(c.Namespace, "tcp", stays.vip(false), 50))
	mend := e.cutOff(t, cut.Addresses.V4.String())
	defer mend()
	over := time.NewTimer(partition)
	defer over.Stop()
	stays.endpoints(t, e.web[1:]...)
	goes.delete(t)
	passing := e.webService(t, "passing", nil)
	passing.endpoints(t, e.web...)
	e.spread(t, e.clients[0], "tcp", passing.vip(false), e.web...)
	passing.delete(t)
	comes := e.webService(t, "comes", nil)
	comes.endpoints(t, e.web[3])
	e.spread(t, e.clients[0], "tcp", comes.vip(false), e.web[3])
	e.spread(t, e.clients[0], "tcp", stays.vip(false), e.web[1:]...)
	if err := e.only(c, "tcp", stays.vip(false), 48, e.web[:2]...); err != nil {
		t.Errorf("while the node is cut off: %v", err)
	}
	select {
	case <-over.C:
	case <-e.ctx.Done():
		t.Fatal(e.ctx.Err())
	}
	mend()
	took := within(t, e.ctx, reconnect, "the node catches up", func() error {
		if err := e.only(c, "tcp", stays.vip(false), 48, e.web[1:]...); err != nil {
			return err
		}
		if err := e.only(c, "tcp", comes.vip(false), 5, e.web[3]); err != nil {
			return err
		}
		if a, err := e.askUDP(flow); err == nil {
			return errors.New(a.Pod + " answers a flow to a Service that is gone")
		}
		return nil
	})
	t.Logf("node-2 had caught up %s after its way to the API server was back", took.Round(100*time.Millisecond))
	e.silent(t, c, "tcp", goes.vip(false))
	e.noTrace(t, goes)
	e.noTrace(t, passing)
	report(t, traffic)
}

// cutOff drops all packets between an address and the API server, until the returned function is
// called.
func (e *env) cutOff(t *testing.T, address string) func() {
	t.Helper()
	rules := fmt.Sprintf(`table ip e2e-cut {
	chain input {
		type filter hook input priority 0;
		ip saddr %[1]s drop
	}
	chain output {
		type filter hook output priority 0;
		ip daddr %[1]s drop
	}
}`, address)
	if _, err := e.lab.Control.Run(e.ctx, "nft", rules); err != nil {
		t.Fatal(err)
	}
	return func() {
		// The first command makes the second one's success independent of an earlier call.
		if _, err := e.lab.Control.Run(t.Context(), "nft", "add table ip e2e-cut; delete table ip e2e-cut"); err != nil {
			t.Error(err)
		}
	}
}
