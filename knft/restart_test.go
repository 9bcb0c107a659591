package knft_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/knft"
)

// node is a kernel in memory and a state directory for restarts of weft.
type node struct {
	t      *testing.T
	kernel *aggregatortest.Kernel
	socket string
	dir    string
	daemon *aggregatortest.Daemon
}

func (n *node) start() {
	n.daemon = aggregatortest.Start(n.t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: n.kernel, StateDir: n.dir}, Socket: n.socket,
	})
}

func (n *node) restart() {
	n.t.Helper()
	if err := n.daemon.Stop(); err != nil {
		n.t.Fatal(err)
	}
	n.start()
}

// program starts a publishing program; stop ends it.
func (n *node) program(cfg knft.Config) (nft *knft.Adapter, stop func()) {
	n.t.Helper()
	c := n.daemon.Dial(n.t, "agent")
	nft = newAdapter(n.t, c, cfg)
	return nft, func() { _, _ = nft.Close(), c.Close() }
}

// published is a node with a program that has published scenery.
func published(t *testing.T, cfg knft.Config) (n *node, nft *knft.Adapter, stop func()) {
	t.Helper()
	n = &node{t: t, kernel: &aggregatortest.Kernel{}, socket: aggregatortest.Socket(t), dir: t.TempDir()}
	n.start()
	nft, stop = n.program(cfg)
	must(t, nft, scenery)
	return n, nft, stop
}

// changes builds on scenery, so it requires known content.
func changes(t *testing.T, nft knftables.Interface) step {
	return steps(
		remove((&scene{t: t, nft: nft}).rule("base", "two")),
		add(noted("base", "ip ttl 1 drop", "last")),
		remove(member("hosts", "10.0.0.1")),
		create(member("hosts", "10.0.0.7")),
		remove(set("nets", "")),
		add(mapping("ports", "ipv4_addr : inet_service")),
	)
}

func checkChanges(t *testing.T, n *node) {
	t.Helper()
	rules, want := n.kernel.Rules(sharedTable, "base"), []string{"ip saddr @hosts drop", "jump plain", "ip ttl 1 drop"}
	if !slices.Equal(rules, want) {
		t.Errorf("rules: %q", rules)
	}
	equal(t, "hosts", n.kernel.Elements(sharedTable, "hosts"), []string{"10.0.0.2", "10.0.0.7"})
	equal(t, "nets", n.kernel.Elements(sharedTable, "nets"), nil)
}

func TestProgramRestarts(t *testing.T) {
	n, _, stop := published(t, sharedConfig)
	stop()
	before := len(n.kernel.Commits())
	nft, _ := n.program(sharedConfig)
	must(t, nft, scenery2)
	for _, ops := range n.kernel.Commits()[before:] {
		t.Errorf("to state it again cost %d operations: %v", len(ops), ops)
	}
	must(t, nft, changes(t, nft))
	checkChanges(t, n)
}

// scenery2 is scenery for a restarted program.
var scenery2 = steps(add(table()), flush(table()), scenery)

// TestAggregatorRestarts: the session resends its content.
func TestAggregatorRestarts(t *testing.T) {
	n, nft, _ := published(t, sharedConfig)
	n.restart()
	// The next transaction may come before the session is back.
	aggregatortest.Eventually(t, "the fragment is back", func() bool {
		c := n.daemon.Dial(t, "agent")
		defer func() { _ = c.Close() }()
		resp, err := c.Get(aggregatortest.Context(t), "", "ip-shared")
		return err == nil && resp.GetStatus().GetState() == weftv1.FragmentStatus_STATE_COMMITTED
	})
	must(t, nft, changes(t, nft))
	checkChanges(t, n)
}

func TestTransactionWhileAggregatorIsAway(t *testing.T) {
	n, nft, _ := published(t, sharedConfig)
	if err := n.daemon.Stop(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		answered <- run(t, nft, add(member("hosts", "10.0.0.7")))
	}()
	n.start()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if got := n.kernel.Elements(sharedTable, "hosts"); len(got) != 3 {
		t.Errorf("hosts: %v", got)
	}
}

// TestBothRestart starts a program after both it and the aggregator ended.
func TestBothRestart(t *testing.T) {
	for _, c := range []struct {
		name     string
		lifetime weftv1.Lifetime
		do       step
		adopted  bool
	}{
		{"begins anew", 0, steps(noTable, scenery), false},
		{"flushes and fills again", 0, scenery2, false},
		{"flushes each object", 0, steps(
			add(table()), flush(chain("base"), chain("plain")), scenery, remove(member("hosts", "10.0.0.2")), add(member("hosts", "10.0.0.2")),
		), false},
		{"builds on what there is", 0, add(rule("plain", "accept")), true},
		{"inserts", 0, steps(insert(rule("base", "accept")), flush(table())), false},
		{"builds on durable content", weftv1.Lifetime_LIFETIME_DURABLE, steps(flush(chain("base")), baseRules), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := sharedConfig
			cfg.Lifetime = c.lifetime
			n, _, stop := published(t, cfg)
			before, commits := n.kernel.String(), len(n.kernel.Commits())
			stop()
			n.restart()
			nft, _ := n.program(cfg)
			err := run(t, nft, c.do)
			if !c.adopted && err != nil {
				t.Fatalf("error: %v", err)
			}
			if c.adopted && (!errors.Is(err, knft.ErrAdopted) || !strings.Contains(err.Error(), "table ip shared chain base")) {
				t.Fatalf("error: %v: want %v", err, knft.ErrAdopted)
			}
			if c.name == "inserts" {
				return
			}
			if after := n.kernel.String(); after != before {
				t.Errorf("the table changed: before\n%s\nafter\n%s", before, after)
			}
			for _, ops := range n.kernel.Commits()[commits:] {
				t.Errorf("it cost %d operations: %v", len(ops), ops)
			}
		})
	}
}

// TestAdoptedIsListed: the List methods answer before the first transaction.
func TestAdoptedIsListed(t *testing.T) {
	n, nft, stop := published(t, sharedConfig)
	before := inventory(aggregatortest.Context(t), nft)
	stop()
	n.restart()
	nft, _ = n.program(sharedConfig)
	if after := inventory(aggregatortest.Context(t), nft); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// TestLifetimes checks the remaining content after a program's end.
func TestLifetimes(t *testing.T) {
	for lifetime, left := range map[weftv1.Lifetime]bool{
		weftv1.Lifetime_LIFETIME_UNSPECIFIED: true,
		weftv1.Lifetime_LIFETIME_STICKY:      true,
		weftv1.Lifetime_LIFETIME_SESSION:     false,
		weftv1.Lifetime_LIFETIME_DURABLE:     true,
	} {
		t.Run(lifetime.String(), func(t *testing.T) {
			cfg := sharedConfig
			cfg.Lifetime = lifetime
			n, _, stop := published(t, cfg)
			stop()
			if left {
				if n.kernel.Empty() {
					t.Error("nothing is left")
				}
				return
			}
			aggregatortest.Eventually(t, "nothing is left", n.kernel.Empty)
		})
	}
}

func TestNoAggregator(t *testing.T) {
	n := &node{t: t, kernel: &aggregatortest.Kernel{}, socket: aggregatortest.Socket(t), dir: t.TempDir()}
	n.start()
	nft, _ := n.program(sharedConfig)
	if err := n.daemon.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx := aggregatortest.Context(t)
	tx := nft.NewTransaction()
	add(table())(tx)
	for name, err := range map[string]error{
		"Run":          nft.Run(ctx, tx),
		"Check":        nft.Check(ctx, tx),
		"ListAll":      second(nft.ListAll(ctx)),
		"List":         second(nft.List(ctx, "chains")),
		"ListRules":    second(nft.ListRules(ctx, "c")),
		"ListElements": second(nft.ListElements(ctx, "set", "s")),
	} {
		if !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := nft.Close(); err != nil {
		t.Error(err)
	}
}
