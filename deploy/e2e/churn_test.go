package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// Each node's weft goes through each kind of end.
const churnRounds = 36

// faultChurn: while Services and endpoints change, weft is ended on one node after the other, by
// SIGTERM and by SIGKILL. No request to stable endpoints fails, and the final rules are right.
//
// Behaviour: 139, 170.
func faultChurn(t *testing.T, e *env) {
	steady := e.webService(t, "steady", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort })
	steady.endpoints(t, e.web...)
	// With any proxy a UDP answer under way is lost when its pod leaves the Service.
	fixed := e.webService(t, "fixed", nil)
	fixed.endpoints(t, e.web...)
	var loads []*lab.Stream
	for i, c := range e.clients {
		for _, v6 := range []bool{false, true} {
			e.spread(t, c, "tcp", steady.vip(v6), e.web...)
			e.spread(t, c, "udp", fixed.vip(v6), e.web...)
		}
		e.spread(t, e.lab.Outside, "tcp", e.nodePortOf(i, steady), e.web...)
		loads = append(loads,
			load(c.Namespace, "tcp", steady.vip(false), 50),
			load(c.Namespace, "udp", fixed.vip(true), 50),
			load(e.lab.Outside.Namespace, "tcp", e.nodePortOf(i, steady), 50))
	}
	traffic := lab.StartTraffic(e.ctx, loads...)
	// A round is so long that weft's changes overlap its end in the next.
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	var passing []*service
	for round := range churnRounds {
		<-tick.C
		// The two pods that leave the Service still serve: old rules lead to an answer.
		steady.endpoints(t, e.web[:2+2*(round%2)]...)
		passing = append(passing, e.webService(t, fmt.Sprintf("passing-%d", round), func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }))
		passing[len(passing)-1].endpoints(t, e.web[round%4])
		if len(passing) > 4 {
			passing[0].delete(t)
			passing = passing[1:]
		}
		d := e.daemons[round/2%len(e.daemons)]
		if round%2 == 1 {
			if err := d.start(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		end := d.kill
		if round/6%2 == 1 {
			end = d.stop
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range e.clients {
		e.spread(t, c, "tcp", steady.vip(false), e.web...)
		e.spread(t, c, "udp", fixed.vip(true), e.web...)
		for j, s := range passing {
			e.spread(t, c, "tcp", s.vip(false), e.web[(churnRounds-len(passing)+j)%4])
		}
		e.spread(t, e.lab.Outside, "tcp", e.nodePortOf(i, steady), e.web...)
	}
	report(t, traffic)
	t.Logf("%d changes, weft ended %d times", churnRounds, churnRounds/2)
	if found := e.traces(t, e.namespace+"/passing-0:", e.namespace+"/passing-7:"); len(found) > 0 {
		t.Errorf("left of a Service that is gone: %s", found[0])
	}
}

// faultNodeRestart: after a restart without rules, flows and files in /run, weft restores the node.
func faultNodeRestart(t *testing.T, e *env) {
	s := e.webService(t, "web", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort })
	s.endpoints(t, e.web...)
	for i, d := range e.daemons {
		c := e.clients[i]
		e.spread(t, c, "tcp", s.vip(false), e.web...)
		e.spread(t, c, "tcp", s.vip(true), e.web...)
		if err := d.kill(); err != nil {
			t.Fatal(err)
		}
		for _, argv := range [][]string{{"nft", "flush", "ruleset"}, {"conntrack", "-F"}} {
			if _, err := d.node.Run(e.ctx, argv[0], argv[1:]...); err != nil {
				t.Fatal(err)
			}
		}
		if left, err := d.ruleset(e.ctx); err != nil || left != "" {
			t.Fatalf("ruleset of %s after the restart: %v:\n%s", d.node.Name(), err, left)
		}
		if err := os.Remove(d.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if locks, err := filepath.Glob(d.socket + ".*"); err == nil {
			for _, l := range locks {
				if err := os.Remove(l); err != nil {
					t.Fatal(err)
				}
			}
		}
		e.silent(t, c, "tcp", s.vip(false))
		start := time.Now()
		if err := d.start(); err != nil {
			t.Fatal(err)
		}
		within(t, e.ctx, 15*time.Second, "all is back on "+d.node.Name(), func() error {
			return e.only(c, "tcp", s.vip(false), 24, e.web...)
		})
		t.Logf("%s had its rules %s after weft's start", d.node.Name(), time.Since(start).Round(10*time.Millisecond))
		for _, v6 := range []bool{false, true} {
			e.spread(t, c, "tcp", s.vip(v6), e.web...)
			e.spread(t, c, "udp", s.vip(v6), e.web...)
		}
		e.spread(t, e.lab.Outside, "tcp", e.nodePortOf(i, s), e.web...)
	}
}
