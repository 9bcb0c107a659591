package services

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

const examples = "../../deploy/examples/manifests"

// manifests copies the examples into a directory and follows it.
func manifests(t testing.TB, s *stack) (dir string, src source.Source) {
	t.Helper()
	dir = filepath.Join(s.dir, "manifests")
	must(t, os.CopyFS(dir, os.DirFS(examples)))
	src, err := source.NewManifests(dir, s.log)
	must(t, err)
	return dir, src
}

// TestWholePath publishes the examples through socket, aggregator and kernel,
// changes them, and restarts everything: what is there stays as it is.
//
// Behaviour: 133.
func TestWholePath(t *testing.T) {
	ns := nfttest.New(t)
	s := newStack(t, ns)
	_, stopAggregator := s.aggregator(t)
	dir, src := manifests(t, s)
	f, stopFrontend := s.frontend(t, src)
	await(t, "the first commit", func() bool { return f.Status().Published })
	list := ns.ListRuleset(t)
	for _, want := range []string{
		`10.96.0.10 . tcp . 80 comment "default/web:http" : goto pick-2`,
		"10.96.0.10 . tcp . 80 . 1 : 10.244.2.2 . 8080",
		"fd00:10:96::10 . tcp . 9100 . 0 : fd00:10:244:1::2 . 9100",
		`10.96.0.99 . tcp . 80 comment "default/empty" : goto reject-chain`,
		"10.96.0.53 . udp . 53 . 1 : 10.244.2.53 . 5353",
		"192.0.2.1", "2001:db8::1",
	} {
		if !strings.Contains(list, want) {
			t.Errorf("the ruleset has no %q:\n%s", want, list)
		}
	}
	// A new endpoint, then one less that leaves a gap: now the last one is first.
	change := func(old, new string) {
		t.Helper()
		path := filepath.Join(dir, "dns.yaml")
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(b), old) {
			t.Fatalf("no %q in %s: %v", old, path, err)
		}
		must(t, os.WriteFile(path+".tmp", []byte(strings.ReplaceAll(string(b), old, new)), 0o644))
		must(t, os.Rename(path+".tmp", path))
	}
	const one = "- {addresses: [10.244.1.53], nodeName: node-1}"
	change(one, one+"\n      - {addresses: [10.244.3.53], nodeName: node-2}")
	await(t, "the third endpoint", func() bool {
		return strings.Contains(ns.ListRuleset(t), "10.96.0.53 . udp . 53 . 2 : 10.244.3.53 . 5353")
	})
	change(one+"\n", "")
	await(t, "the gap to be filled and the unused chain to be swept", func() bool {
		list = ns.ListRuleset(t)
		return strings.Contains(list, "10.96.0.53 . udp . 53 . 0 : 10.244.3.53 . 5353") && !strings.Contains(list, "chain pick-3 ")
	})

	outer := t
	for _, what := range []string{"frontend", "aggregator", "both"} {
		t.Run("restart of "+what, func(t *testing.T) {
			monitor := watchRuleset(t, ns)
			if what != "aggregator" {
				stopFrontend()
			}
			if what != "frontend" {
				stopAggregator()
				_, stopAggregator = s.aggregator(outer)
			}
			before := f.Status()
			if what != "aggregator" {
				src, err := source.NewManifests(dir, s.log)
				must(t, err)
				before = Status{}
				f, stopFrontend = s.frontend(outer, src)
			}
			await(t, "an acknowledgement", func() bool { return f.Status().Acknowledged.After(before.Acknowledged) })
			publishtest.Equal(t, "the ruleset after the restart", ns.ListRuleset(t), list)
			publishtest.Equal(t, "the restart wrote", monitor(), "")
		})
	}
	t.Run("another version", func(t *testing.T) {
		stopFrontend()
		putOtherPriorities(t, s)
		src, err := source.NewManifests(dir, s.log)
		must(t, err)
		f, _ = s.frontend(t, src)
		await(t, "the first commit", func() bool { return f.Status().Published })
		// A chain that was made anew is listed last.
		sorted := func(list string) []string { return slices.Sorted(strings.Lines(list)) }
		if diff := cmp.Diff(sorted(list), sorted(ns.ListRuleset(t))); diff != "" {
			t.Errorf("the ruleset is not what it was:\n%s", diff)
		}
	})
}

// putOtherPriorities has base chains like a predecessor's, with other priorities.
func putOtherPriorities(t *testing.T, s *stack) {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{Socket: s.socket, Publisher: Publisher})
	must(t, err)
	defer c.Close()
	got, err := c.Get(t.Context(), "", render.Fragment)
	must(t, err)
	old := proto.CloneOf(got.GetFragment())
	for _, table := range old.GetTables() {
		for _, chain := range table.GetChains() {
			if chain.GetHook() == "prerouting" || chain.GetHook() == "forward" {
				chain.Priority = "-77"
			}
		}
	}
	_, err = c.Apply(t.Context(), old)
	must(t, err)
	if list := s.ns.ListRuleset(t); !strings.Contains(list, "priority -77") {
		t.Fatalf("the other version's rules are not there:\n%s", list)
	}
}

// watchRuleset records what is written to the ruleset until it is called.
func watchRuleset(t *testing.T, ns *nfttest.NS) (stop func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "monitor")
	pid := ns.Run(t, "sh", "-c", fmt.Sprintf("nft monitor >%s 2>&1 & echo $!", path))
	// The monitor is there when it reports a table of ours.
	probe := 0
	await(t, "nft monitor", func() bool {
		probe++
		ns.Run(t, "nft", fmt.Sprintf("add table ip probe%d; delete table ip probe%d", probe, probe))
		b, _ := os.ReadFile(path)
		return strings.Contains(string(b), "probe")
	})
	return func() string {
		ns.Run(t, "nft", "add table ip last; delete table ip last")
		var got []byte
		await(t, "the last event", func() bool {
			got, _ = os.ReadFile(path)
			return strings.Contains(string(got), "delete table ip last")
		})
		ns.Run(t, "kill", strings.TrimSpace(pid))
		var out []string
		for line := range strings.Lines(string(got)) {
			// Taking over the table is a message, but no change.
			if strings.Contains(line, "ip probe") || strings.Contains(line, "ip last") || strings.HasPrefix(line, "# new generation") || strings.HasPrefix(line, "add table ip") {
				continue
			}
			out = append(out, line)
		}
		return strings.Join(out, "")
	}
}
