package e2e

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var outage = flag.Duration("e2e.outage", time.Minute, "how long fault/api-server-away keeps the API server down")

// outageSlack is the rest of fault/api-server-away's time.
const outageSlack = 6 * time.Minute

// faultOutage: during a long outage of the API server every request is answered, also on a node where
// weft restarts. Changes follow the next successful attempt to connect.
//
// Behaviour: 131.
func faultOutage(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, "a", e.web[:3]...)
	var loads []*namedLoad
	for _, c := range e.clients {
		for _, network := range []string{"tcp", "udp"} {
			e.spread(t, c, network, s.vip(false, 80), e.web[:3]...)
			e.spread(t, c, network, s.vip(true, 80), e.web[:3]...)
			loads = append(loads, e.startLoad(t, c.Namespace, network, s.vip(network == "udp", 80), 20))
		}
	}
	over := time.NewTimer(*outage)
	defer over.Stop()
	if err := e.cluster.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	// This weft has never seen the API server, and must keep the rules.
	restarted := e.daemons[2]
	before := restarted.objects(t, e)
	if err := restarted.kill(); err != nil {
		t.Fatal(err)
	}
	if err := restarted.start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-over.C:
	case <-e.ctx.Done():
		t.Fatal(e.ctx.Err())
	}
	if lost := changed(before, restarted.objects(t, e)); len(lost) > 0 {
		t.Errorf("a weft without an API server rewrote %d objects:\n%s", len(lost), strings.Join(lost, "\n"))
	}
	if err := e.cluster.StartAPIServer(e.ctx); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	// Written by hand: the controller's own watches take up to a minute to return.
	s.endpoints(t, "a", e.web...)
	fresh := e.webService(t, "fresh", nil)
	fresh.endpoints(t, "a", e.web...)
	for i, c := range e.clients {
		within(t, e.ctx, catchUp, fmt.Sprintf("changes after the outage reach %s", c.Name()), func() error {
			if err := e.only(c, "tcp", s.vip(false, 80), 24, e.web...); err != nil {
				return err
			}
			return e.only(c, "udp", fresh.vip(true, 80), 24, e.web...)
		})
		e.note(t, "node-%d had the changes %s after the API server's return", i+1, time.Since(back).Round(100*time.Millisecond))
	}
	e.report(t, loads)
	fresh.endpoints(t, "a", e.web[0])
	e.spread(t, e.clients[2], "tcp", fresh.vip(false, 80), e.web[0])
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
	stays.endpoints(t, "a", e.web[:2]...)
	goes := e.webService(t, "goes", nil)
	goes.endpoints(t, "a", e.web...)
	cut, c := e.lab.Nodes[1], e.clients[1]
	e.spread(t, c, "tcp", stays.vip(false, 80), e.web[:2]...)
	e.spread(t, c, "tcp", goes.vip(false, 80), e.web...)
	flow := e.flow(t, c, goes.vip(false, 80), 40300)
	if _, err := e.askUDP(flow.Conversation); err != nil {
		t.Fatal(err)
	}
	load := e.startLoad(t, c.Namespace, "tcp", stays.vip(false, 80), 50)
	mend := e.cutOff(t, cut.Addresses.V4.String())
	over := time.NewTimer(partition)
	defer over.Stop()
	stays.endpoints(t, "a", e.web[1:]...)
	goes.delete(t)
	passing := e.webService(t, "passing", nil)
	passing.endpoints(t, "a", e.web...)
	e.spread(t, e.clients[0], "tcp", passing.vip(false, 80), e.web...)
	passing.delete(t)
	comes := e.webService(t, "comes", nil)
	comes.endpoints(t, "a", e.web[3])
	e.spread(t, e.clients[0], "tcp", comes.vip(false, 80), e.web[3])
	e.spread(t, e.clients[0], "tcp", stays.vip(false, 80), e.web[1:]...)
	if err := e.only(c, "tcp", stays.vip(false, 80), 48, e.web[:2]...); err != nil {
		t.Errorf("while the node is cut off: %v", err)
	}
	select {
	case <-over.C:
	case <-e.ctx.Done():
		t.Fatal(e.ctx.Err())
	}
	mend()
	took := within(t, e.ctx, reconnect, "the node catches up", func() error {
		if err := e.only(c, "tcp", stays.vip(false, 80), 48, e.web[1:]...); err != nil {
			return err
		}
		if err := e.only(c, "tcp", comes.vip(false, 80), 5, e.web[3]); err != nil {
			return err
		}
		if a, err := e.askUDP(flow.Conversation); err == nil {
			return errors.New(a.Pod + " answers a flow to a Service that is gone")
		}
		return nil
	})
	e.note(t, "node-2 had caught up %s after its way to the API server was back", took.Round(100*time.Millisecond))
	e.silent(t, c, "tcp", goes.vip(false, 80))
	e.noTrace(t, goes)
	e.noTrace(t, passing)
	e.report(t, []*namedLoad{load})
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
	open := false
	mend := func() {
		if open {
			return
		}
		open = true
		if _, err := e.lab.Control.Run(t.Context(), "nft", "delete table ip e2e-cut"); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(mend)
	return mend
}
