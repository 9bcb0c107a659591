package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// faultReadable: nft prints weft's rules in both formats.
func faultReadable(t *testing.T, e *env) {
	full := e.webService(t, "full", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort })
	full.endpoints(t, "a", e.web...)
	empty := e.webService(t, "empty", nil)
	for i, d := range e.daemons {
		e.spread(t, e.clients[i], "tcp", full.vip(false, 80), e.web...)
		e.refused(t, e.clients[i], "tcp", empty.vip(false, 80))
		text, err := d.ruleset(e.ctx)
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(text, full.vip(false, 80).Addr().String()) {
			t.Errorf("ruleset of %s: no %s in it:\n%s", d.node.Name(), full.vip(false, 80).Addr(), text)
		}
		if len(d.objects(t, e)) == 0 {
			t.Errorf("JSON ruleset of %s: nothing in it", d.node.Name())
		}
	}
}

// faultFlush: other programs cannot touch weft's tables; before kernel 6.9 they can, but weft repairs
// them.
//
// Behaviour: 145.
func faultFlush(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, "a", e.web...)
	for i, d := range e.daemons {
		c := e.clients[i]
		e.spread(t, c, "tcp", s.vip(false, 80), e.web...)
		conn, err := c.Open(e.ctx, "tcp", s.vip(false, 80), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		before := d.objects(t, e)
		if _, err := d.node.Run(e.ctx, "nft", "flush", "ruleset"); err != nil {
			t.Error(err)
		}
		for _, table := range e.tables(t, d) {
			for _, verb := range []string{"delete table %s", "flush table %s", "add chain %s e2e"} {
				command := fmt.Sprintf(verb, table)
				if _, err := d.node.Run(e.ctx, "nft", command); err == nil || !strings.Contains(err.Error(), "Operation not permitted") {
					t.Errorf("nft %s on %s: %v, want that it is not permitted", command, d.node.Name(), err)
				}
			}
		}
		if lost := changed(before, d.objects(t, e)); len(lost) > 0 {
			t.Errorf("foreign commands changed the rules of %s:\n%s", d.node.Name(), strings.Join(lost, "\n"))
		}
		e.spread(t, c, "tcp", s.vip(false, 80), e.web...)
		if _, err := conn.Ask(e.ctx, "still there"); err != nil {
			t.Errorf("connection made before the flush: %v", err)
		}
	}
}

func (e *env) tables(t *testing.T, d *daemon) []string {
	t.Helper()
	text, err := d.node.Run(e.ctx, "nft", "-j", "list", "tables")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Nftables []struct {
			Table struct{ Family, Name string }
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("read tables of %s: %v", d.node.Name(), err)
	}
	var all []string
	for _, entry := range list.Nftables {
		if entry.Table.Name != "" {
			all = append(all, entry.Table.Family+" "+entry.Table.Name)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no tables", d.node.Name())
	}
	return all
}

// faultAPIServer: without an API server everything known continues; with it back, so do changes.
func faultAPIServer(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, "a", e.web[:2]...)
	for _, c := range e.clients {
		e.spread(t, c, "tcp", s.vip(false, 80), e.web[:2]...)
	}
	if err := e.cluster.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	for _, c := range e.clients {
		if err := e.only(c, "tcp", s.vip(false, 80), 50, e.web[:2]...); err != nil {
			t.Error(err)
		}
	}
	start := time.Now()
	if err := e.cluster.StartAPIServer(e.ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("the API server was ready again in %s", time.Since(start).Round(time.Millisecond))
	for _, c := range e.clients {
		if err := e.only(c, "tcp", s.vip(false, 80), 50, e.web[:2]...); err != nil {
			t.Error(err)
		}
	}
	s.endpoints(t, "a", e.web[2:]...)
	// client-go's backoff of the watch is at most 30 s.
	for _, c := range e.clients {
		took := within(t, e.ctx, 3*time.Minute, "a change after the restart reaches "+c.Name(), func() error {
			return e.only(c, "tcp", s.vip(false, 80), 24, e.web[2:]...)
		})
		t.Logf("the change was seen from %s after %s", c.Name(), took.Round(time.Millisecond))
	}
}

// faultKilled: while weft is dead traffic flows, and its restart does not change the rules.
//
// Behaviour: 132.
func faultKilled(t *testing.T, e *env) {
	s := e.webService(t, "web", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort })
	s.endpoints(t, "a", e.web...)
	conns := make([]*lab.Conversation, len(e.clients))
	for i, c := range e.clients {
		e.spread(t, c, "tcp", s.vip(false, 80), e.web...)
		e.spread(t, c, "tcp", s.vip(true, 80), e.web...)
		var err error
		if conns[i], err = c.Open(e.ctx, "tcp", s.vip(false, 80), 0); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	for i, d := range e.daemons {
		c := e.clients[i]
		before := d.objects(t, e)
		if err := d.kill(); err != nil {
			t.Fatal(err)
		}
		monitor := e.monitor(t, d)
		if err := e.only(c, "tcp", s.vip(false, 80), 50, e.web...); err != nil {
			t.Errorf("while weft is dead: %v", err)
		}
		// The witness has as many endpoints as the other Service, so that only its own elements change.
		witness := e.webService(t, fmt.Sprintf("witness-%d", i), nil)
		witness.endpoints(t, "a", e.web...)
		if err := d.start(); err != nil {
			t.Fatal(err)
		}
		e.spread(t, c, "tcp", witness.vip(false, 80), e.web...)
		if lost := changed(before, d.objects(t, e)); len(lost) > 0 {
			t.Errorf("the restart rewrote %d objects of %s:\n%s", len(lost), d.node.Name(), strings.Join(lost, "\n"))
		}
		for _, line := range monitor() {
			if rewrites(line, s) {
				t.Errorf("the restart on %s committed: %s", d.node.Name(), line)
			}
		}
		if _, err := conns[i].Ask(e.ctx, "still there"); err != nil {
			t.Errorf("connection made before the restart: %v", err)
		}
	}
}

// monitor follows commits on the node. The returned function ends it and returns nft's lines.
func (e *env) monitor(t *testing.T, d *daemon) func() []string {
	t.Helper()
	log := filepath.Join(logDir, d.node.Name()+"-monitor.log")
	p, err := d.node.Start("nft monitor", log, nil, "nft", "monitor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	// A throwaway table shows that the monitor listens.
	within(t, e.ctx, 5*time.Second, "nft monitor listens", func() error {
		for _, verb := range []string{"add", "delete"} {
			if _, err := d.node.Run(e.ctx, "nft", verb, "table", "ip", "e2e-monitor"); err != nil {
				return err
			}
		}
		if !strings.Contains(p.Tail(10), "e2e-monitor") {
			return errors.New("it has reported nothing yet")
		}
		return nil
	})
	return func() []string {
		var lines []string
		within(t, e.ctx, 5*time.Second, "nft monitor reports the last commit", func() error {
			b, err := os.ReadFile(log)
			lines = strings.Split(string(b), "\n")
			if err == nil && !strings.Contains(string(b), "witness") {
				err = errors.New("no element of the witness")
			}
			return err
		})
		return lines
	}
}

// rewrites reports whether a line of nft monitor changes objects that a restart must keep:
// declarations, and all elements of the service. Taking tables over shows as adding them; unused chains
// may go.
func rewrites(line string, s *service) bool {
	for _, word := range []string{"add rule ", "add chain ", "add set ", "add map ", "replace rule ", "delete table ip weft", "delete table ip6 weft"} {
		if strings.HasPrefix(line, word) {
			return true
		}
	}
	for _, v6 := range []bool{false, true} {
		if strings.Contains(line, " "+s.vip(v6, 80).Addr().String()+" ") {
			return true
		}
	}
	return strings.Contains(line, s.Namespace+"/"+s.Name+":")
}

// faultKilledChange: a restarted weft makes up for missed changes, including missed flushes of UDP
// flows.
//
// Behaviour: 106.
func faultKilledChange(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, "a", e.web...)
	gone := e.webService(t, "gone", nil)
	gone.endpoints(t, "a", e.web[0])
	for i, d := range e.daemons {
		s.endpoints(t, "a", e.web...)
		c := e.clients[i]
		e.spread(t, c, "udp", s.vip(false, 80), e.web...)
		if i == 0 {
			e.spread(t, c, "tcp", gone.vip(false, 80), e.web[0])
		}
		flow, err := c.Open(e.ctx, "udp", s.vip(false, 80), uint16(40012+i))
		if err != nil {
			t.Fatal(err)
		}
		defer flow.Close()
		first, err := e.askUDP(flow)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.kill(); err != nil {
			t.Fatal(err)
		}
		rest := without(e.web, first.Pod)
		s.endpoints(t, "a", rest...)
		if i == 0 {
			gone.delete(t)
		}
		start := time.Now()
		if err := d.start(); err != nil {
			t.Fatal(err)
		}
		e.spread(t, c, "tcp", s.vip(false, 80), rest...)
		e.silent(t, c, "tcp", gone.vip(false, 80))
		within(t, e.ctx, 5*time.Second, "the flow leaves "+first.Pod, func() error {
			a, err := e.askUDP(flow)
			if err == nil && a.Pod == first.Pod {
				err = errors.New(a.Pod + " answered")
			}
			return err
		})
		t.Logf("%s was up to date %s after its start", d.node.Name(), time.Since(start).Round(time.Millisecond))
	}
}
