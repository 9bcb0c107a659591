package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// faultFlush: other programs cannot touch weft's tables; before kernel 6.9 they can, but weft repairs
// them.
//
// Behaviour: 145.
func faultFlush(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, e.web...)
	for i, d := range e.daemons {
		c := e.clients[i]
		e.spread(t, c, "tcp", s.vip(false), e.web...)
		conn, err := c.Open(e.ctx, "tcp", s.vip(false), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		before := d.objects(t, e)
		if _, err := d.node.Run(e.ctx, "nft", "flush", "ruleset"); err != nil {
			t.Error(err)
		}
		for _, table := range tables(t, before) {
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
		e.spread(t, c, "tcp", s.vip(false), e.web...)
		if _, err := conn.Ask(e.ctx, "still there"); err != nil {
			t.Errorf("connection made before the flush: %v", err)
		}
	}
}

func tables(t *testing.T, objects map[string]string) []string {
	t.Helper()
	var all []string
	for key := range objects {
		kind := strings.Fields(key)
		if table := kind[1] + " " + kind[2]; kind[0] == "chain" && !slices.Contains(all, table) {
			all = append(all, table)
		}
	}
	if len(all) == 0 {
		t.Fatal("the node has no tables")
	}
	return all
}
