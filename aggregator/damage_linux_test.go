package aggregator_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// repairTime is how soon foreign damage must be repaired.
const repairTime = 30 * time.Second

// rich is a fragment with something of every kind.
func rich() *weftv1.Fragment {
	f := blocklist("rich", "10.0.0.1", "10.0.0.2")
	t := f.Tables[0]
	t.Sets = append(t.Sets, &weftv1.Set{Name: "nets", Type: "ipv4_addr", Flags: []string{"interval"}, Elements: elements("10.1.0.0/16", "10.2.0.0/24")})
	t.Maps = []*weftv1.Set{{Name: "ways", Type: "inet_service : verdict", Elements: []*weftv1.Element{{Key: "80", Value: "goto web"}, {Key: "22", Value: "drop"}}}}
	t.Chains[0].Rules = append(t.Chains[0].Rules,
		&weftv1.Rule{Text: "ip saddr @nets counter", Comment: "nets"},
		&weftv1.Rule{Text: "tcp dport vmap @ways"})
	t.Chains = append(t.Chains, &weftv1.Chain{Name: "web", Rules: []*weftv1.Rule{{Text: "ip ttl 1 drop"}, {Text: "accept", Comment: "the end"}}})
	return f
}

// damage is what a foreign process does to table ip demo, as input of nft. HANDLE
// is the handle of the rule with the comment "nets".
var damage = []string{
	"flush ruleset",
	"delete table ip demo",
	"delete table ip demo; add table ip demo2; delete table ip demo2",
	"flush table ip demo",
	"flush chain ip demo web",
	"delete rule ip demo input handle HANDLE",
	"insert rule ip demo input accept",
	"add rule ip demo web counter comment \"foreign\"",
	"replace rule ip demo input handle HANDLE drop",
	"delete element ip demo blocked { 10.0.0.1 }",
	"add element ip demo blocked { 10.6.6.6 }",
	"flush set ip demo blocked",
	"flush map ip demo ways",
	"delete element ip demo nets { 10.1.0.0/16 }",
	"add element ip demo nets { 10.9.0.0/16 }",
	"delete element ip demo ways { 80 }; add element ip demo ways { 80 : accept }",
	"add chain ip demo theirs { type filter hook forward priority 5; policy drop; }",
	"add chain ip demo theirs; add rule ip demo theirs drop; add rule ip demo web jump theirs",
	"add chain ip demo input { policy drop; }",
	"add set ip demo odd { typeof ip saddr . meta mark; flags dynamic,timeout; timeout 1h; counter; }",
	"add map ip demo odd { type ifname . inet_proto : mark; flags interval; }; add rule ip demo web ip saddr @blocked meta mark set 7",
	"add counter ip demo total; add rule ip demo web counter name total",
}

var ruleHandle = regexp.MustCompile(`# handle (\d+)`)

// TestForeignDamageIsRepairedWithinASecond runs as on kernels without ownership,
// and measures from the end of the foreign command to the end of the repair.
//
// Behaviour: 145.
func TestForeignDamageIsRepairedWithinASecond(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	cfg, _, reg := observed(aggregator.Config{})
	d, _ := startKernel(t, ns, cfg, true)
	c := d.Dial(t, "tester")
	if _, err := c.Apply(aggregatortest.Context(t), rich()); err != nil {
		t.Fatal(err)
	}
	want := list(t, ns)
	events := watch(t, d)
	var worst time.Duration
	for i, text := range damage {
		handle := ruleHandle.FindStringSubmatch(ruleLine(t, ns, `comment "nets"`))[1]
		text = strings.ReplaceAll(text, "HANDLE", handle)
		ns.Nft(t, text)
		ended := time.Now()
		aggregatortest.Eventually(t, "what this did is repaired: "+text, func() bool {
			return metric(t, reg, "weft_drift_repairs_total", "") > float64(i)
		})
		told := events.nth(t, i, func(e *weftv1.WatchResponse) bool { return e.GetDrift().GetRepaired() != nil })
		took := told.GetTime().AsTime().Sub(ended)
		worst = max(worst, took)
		if took > repairTime {
			t.Errorf("repaired after %v: %s", took, text)
		}
		if reason := told.GetDrift().GetReason(); !strings.Contains(reason, "table ip demo was") || !strings.Contains(reason, "(nft)") {
			t.Errorf("reason %q does not say who did what", reason)
		}
		if got := list(t, ns); got != want {
			t.Fatalf("after %s\n%s\nwant:\n%s", text, got, want)
		}
	}
	t.Logf("%d kinds of damage, the slowest repair was told %v after the command's end", len(damage), worst)
}

// list returns the ruleset.
func list(t *testing.T, ns *nfttest.NS) string {
	t.Helper()
	return ns.ListRuleset(t)
}

// nth waits for the nth event that matches.
func (l *eventLog) nth(t *testing.T, n int, match func(*weftv1.WatchResponse) bool) *weftv1.WatchResponse {
	t.Helper()
	var found *weftv1.WatchResponse
	aggregatortest.Eventually(t, fmt.Sprintf("event %d", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		left := n
		for _, e := range l.events {
			if !match(e) {
				continue
			}
			if left == 0 {
				found = e
				return true
			}
			left--
		}
		return false
	})
	return found
}

// TestDamageWhileDown does the same while no weft runs: the publisher's return
// brings back what is missing, and touches nothing else.
func TestDamageWhileDown(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	for _, noOwner := range []bool{false, true} {
		t.Run(fmt.Sprintf("noOwner=%v", noOwner), func(t *testing.T) {
			ns, dir, ctx := nfttest.New(t), t.TempDir(), aggregatortest.Context(t)
			d, conn := startKernel(t, ns, aggregator.Config{StateDir: dir}, noOwner)
			mustApply(t, d.Dial(t, "tester"), rich())
			want := list(t, ns)
			for _, text := range damage {
				must(t, conn.Close()) // as kill -9 does
				handle := ruleHandle.FindStringSubmatch(ruleLine(t, ns, `comment "nets"`))[1]
				end := ruleLine(t, ns, `comment "the end"`)
				text = strings.ReplaceAll(text, "HANDLE", handle)
				ns.Nft(t, text)
				spared := strings.Contains(ns.Run(t, "nft", "-a", "list", "ruleset"), end)

				_ = d.Stop()
				d, conn = startKernel(t, ns, aggregator.Config{StateDir: dir}, noOwner)
				if _, err := d.Dial(t, "tester").Apply(ctx, rich()); err != nil {
					t.Fatalf("return after %s: %v", text, err)
				}
				aggregatortest.Eventually(t, "the ruleset is as before "+text, func() bool { return list(t, ns) == want })
				if after := ruleLine(t, ns, `comment "the end"`); spared && after != end {
					t.Errorf("%s: untouched rule %s became %s", text, end, after)
				}
			}
		})
	}
}

// TestTakenTableName has another program take the name of a table: that table
// waits, its publisher is told, and no other publisher notices.
func TestTakenTableName(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns, ctx := nfttest.New(t), aggregatortest.Context(t)
	cfg, _, reg := observed(aggregator.Config{Retry: 200 * time.Millisecond})
	d, _ := startKernel(t, ns, cfg, true)
	c := d.Dial(t, "tester")
	other := blocklist("other", "10.3.0.1")
	other.Tables[0].Name = "other"
	for _, f := range []*weftv1.Fragment{rich(), other} {
		mustApply(t, c, f)
	}
	want := list(t, ns)
	events := watch(t, d)
	ns.Nft(t, "delete table ip demo\nadd table ip demo\nadd chain ip demo theirs\nflush table ip other")
	events.until(t, "watchers know", func(e *weftv1.WatchResponse) bool {
		return strings.Contains(e.GetDrift().GetReason(), "not repaired yet") && strings.Contains(e.GetDrift().GetReason(), "was not created by weft")
	})
	if n := metric(t, reg, "weft_unrepaired_tables", ""); n != 1 {
		t.Errorf("%v tables are counted as not repaired", n)
	}
	if err := d.Aggregator.Drift(); err == nil || !strings.Contains(err.Error(), "not repaired yet") {
		t.Errorf("drift: %v", err)
	}
	// The damage of the other table is repaired, and its updates are committed.
	began := time.Now()
	other.Tables[0].Sets[0].Elements = elements("10.3.0.1", "10.3.0.2")
	mustApply(t, c, other)
	t.Logf("the other publisher waited %v", time.Since(began))
	if text := ns.Run(t, "nft", "list", "table", "ip", "other"); !strings.Contains(text, "10.3.0.2") || !strings.Contains(text, "saddr @blocked") {
		t.Fatalf("table of the other publisher:\n%s", text)
	}
	more := rich()
	more.Tables[0].Sets[0].Elements = elements("10.0.0.1", "10.0.0.9")
	_, err := c.Apply(ctx, more)
	rejection(t, err, weftv1.Violation_REASON_KERNEL)
	if text := ns.Run(t, "nft", "list", "table", "ip", "demo"); !strings.Contains(text, "theirs") || strings.Contains(text, "blocked") {
		t.Fatalf("the foreign table:\n%s", text)
	}

	ns.Nft(t, "delete table ip demo")
	aggregatortest.Eventually(t, "the table is back", func() bool { return metric(t, reg, "weft_unrepaired_tables", "") == 0 })
	if got := ns.Run(t, "nft", "list", "table", "ip", "demo"); !strings.Contains(want, strings.TrimSpace(got)) {
		t.Fatalf("table:\n%s\nwant it from:\n%s", got, want)
	}
	mustApply(t, c, more)
}

// TestForeignHandsUnderLoad has updates and damage race: at the end the kernel
// holds what was acknowledged.
func TestForeignHandsUnderLoad(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	ns, ctx := nfttest.New(t), aggregatortest.Context(t)
	d, _ := startKernel(t, ns, aggregator.Config{Rate: 1000}, true)
	c := d.Dial(t, "tester")
	mustApply(t, c, rich())
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		rnd := rand.New(rand.NewPCG(seed, 1))
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			text := damage[rnd.IntN(len(damage))]
			if strings.Contains(text, "HANDLE") || strings.Contains(text, "counter ip") {
				continue
			}
			// What it is about may be gone for the moment.
			_, _ = ns.Output(text, "nft", "-f", "-")
		}
	}()
	final := rich()
	for i := range 100 {
		final = rich()
		final.Tables[0].Sets[0].Elements = elements("10.0.0.1", fmt.Sprintf("10.4.0.%d", i))
		if _, err := c.Apply(ctx, final); err != nil {
			t.Errorf("update %d: %v", i, err)
		}
	}
	close(stop)
	<-done
	// Another namespace shows what it must be.
	clean := nfttest.New(t)
	e, _ := startKernel(t, clean, aggregator.Config{}, true)
	mustApply(t, e.Dial(t, "tester"), final)
	want := list(t, clean)
	aggregatortest.Eventually(t, "the kernel holds what was acknowledged", func() bool { return list(t, ns) == want })
}
