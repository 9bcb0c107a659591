package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// weft runs a verb of the command line against the daemon's socket.
func (d *daemon) weft(e *env, args ...string) (string, error) {
	return d.node.Run(e.ctx, binary("weft"), append(args, "--socket", d.socket)...)
}

// publisherPolicy: rules of a third party come into force beside the Services, and go, without an
// effect on the Services.
//
// Behaviour: 167.
func publisherPolicy(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, e.web...)
	for i, d := range e.daemons {
		c, other := e.clients[i], e.lab.Nodes[i]
		to := s.vip(false)
		e.spread(t, c, "tcp", to, e.web...)
		before := d.objects(t, e)
		file := filepath.Join(runDir, "deny.nft")
		policy := fmt.Sprintf(`table ip deny {
	set blocked {
		type ipv4_addr
		elements = { %s }
	}
	chain forward {
		type filter hook forward priority 10; policy accept;
		ip saddr @blocked counter drop
	}
}
`, c.Addresses.V4)
		if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.weft(e, "apply", "-f", file); err != nil {
			t.Fatal(err)
		}
		// Committed means in force, without waiting.
		if a, err := c.Ask(e.ctx, "tcp", to, answerTime/2); err == nil {
			t.Errorf("%s: %s answered though the client is blocked", c.Name(), a.Pod)
		}
		if err := e.only(other, "tcp", to, 24*len(e.web), e.web...); err != nil {
			t.Errorf("while another is blocked: %v", err)
		}
		list, err := d.weft(e, "get")
		if err != nil || !strings.Contains(list, "deny") {
			t.Errorf("weft get on %s: %v, want the fragment in:\n%s", d.node.Name(), err, list)
		}
		if _, err := d.weft(e, "delete", "deny"); err != nil {
			t.Fatal(err)
		}
		e.spread(t, c, "tcp", to, e.web...)
		if lost := changed(before, d.objects(t, e)); len(lost) > 0 {
			t.Errorf("the policy changed what is not its own on %s:\n%s", d.node.Name(), strings.Join(lost, "\n"))
		}
	}
}
