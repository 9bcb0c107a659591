package e2e

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

// outage is how long the API server stays away.
var outage = flag.Duration("e2e.outage", time.Minute, "how long fault/api-server-away keeps the API server down")

// outageSlack is what fault/api-server-away takes besides.
const outageSlack = 6 * time.Minute

// faultOutage: without an API server for a long time every request is
// answered, also on a node where weft is killed and started meanwhile; once
// it is back, so are changes, with the next attempt to reach it.
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
	// A weft that has never seen this API server knows nothing better than the rules that are there.
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
	// Written by hand: the controller's own watches take up to a minute to come back.
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

// catchUp bounds how long a change may take after the API server is back, however long it
// was away. weft backs off as client-go does, so that a cluster's nodes do not all ask at
// once: up to 30 s, plus as much again at random, and twice if the server was not ready
// at the first attempt.
const catchUp = 3 * time.Minute

// reconnect bounds how long a change may take after a way is back on which
// packets were lost: TCP repeats the first of them after at most as long as it waited before.
const reconnect = 2 * partition

// partition is how long a node is cut off.
const partition = 20 * time.Second

// faultPartition: a node that can't reach the API server goes on with what it
// knows, and makes up for all that changed meanwhile: what came, what went, and what came and went.
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

// cutOff drops all packets between an address and the API server. The function
// returned lets them through again.
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
