package cyclonus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// probes checks the probes: without rules every flow passes, and with a rule for each denied flow of a
// step exactly these do not.
func probes(t *testing.T, n *network) {
	s := allSteps(t, n.places)[8]
	want := s.expected(n.places)
	open := map[flow]bool{}
	for f := range want {
		open[f] = true
	}
	for _, f := range flowsBetween(n.places) {
		open[f] = true
	}
	if d, _, err := n.agree(t.Context(), open); err != nil || len(d) > 0 {
		t.Fatalf("without rules %d of %d flows differ, such as %v: %v", len(d), len(want), first(d), err)
	}
	var rules strings.Builder
	rules.WriteString("table inet probes { chain forward { type filter hook forward priority 0;\n")
	denied := 0
	for f, allowed := range want {
		if allowed {
			continue
		}
		denied++
		ip := []string{"ip", "ip6"}[family(f.To)]
		protocol := map[corev1.Protocol]int{corev1.ProtocolTCP: 6, corev1.ProtocolUDP: 17, corev1.ProtocolSCTP: 132}[f.Protocol]
		fmt.Fprintf(&rules, "%s saddr %s %s daddr %s meta l4proto %d th dport %d drop\n", ip, f.From, ip, f.To, protocol, f.Port)
	}
	rules.WriteString("}\n}\n")
	file := filepath.Join(t.TempDir(), "rules.nft")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, node := range n.lab.Nodes {
		if _, err := node.Run(t.Context(), "nft", "-f", file); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, node := range n.lab.Nodes {
			if _, err := node.Run(context.Background(), "nft", "delete", "table", "inet", "probes"); err != nil {
				t.Error(err)
			}
		}
	})
	d, _, err := n.agree(t.Context(), want)
	if err != nil || len(d) > 0 || denied == 0 {
		t.Errorf("%s: with rules for %d of %d flows %d differ, such as %v: %v", s.name, denied, len(want), len(d), first(d), err)
	}
}

func first(d []difference) any {
	if len(d) == 0 {
		return nil
	}
	return d[0]
}
