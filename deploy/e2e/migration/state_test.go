package migration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shape is what an update between the two versions writes besides taking over the tables: in this version rules count,
// and session affinity has rules of ports; in the earlier one neither is so.
var shape = []*regexp.Regexp{
	// Rules that drop or reject count by reason, and those that pick an endpoint count by listener.
	regexp.MustCompile(`^delete rule ip6? weft (firewall|reject-chain|drop-chain|unserved|(nodeport-)?pick-\d+) handle \d+$`),
	regexp.MustCompile(`^(add|insert) rule ip6? weft (reject-chain|drop-chain|unserved) .*(drop|reject)`),
	regexp.MustCompile(`^(add|insert) rule ip6? weft (nodeport-)?pick-\d+ .*@(service|nodeport)-connections$`),
	// Source ranges have a map of chains, where the earlier version has sets.
	regexp.MustCompile(`^(add|insert) rule ip6? weft firewall .*@(source-ranges|firewalled)( |$)`),
	regexp.MustCompile(`^(add map|add set|delete set) ip6? weft (source-ranges|firewalled|allowed-sources)( |$)`),
	regexp.MustCompile(`^(create|add|delete) chain ip6? weft drop-chain`),
	regexp.MustCompile(`^(create|add|delete) counter ip6? weft dropped-`),
	regexp.MustCompile(`^(add|delete) (set|element) ip6? weft (service|nodeport)-connections`),
	// Session affinity has rules of ports, where the earlier version has a verdict for each endpoint.
	regexp.MustCompile(`^(add map|delete set) ip6? weft (nodeport-)?sticky-(services|nodeports|endpoints)( |$)`),
	regexp.MustCompile(`^(create|delete) chain ip6? weft remember$`),
	regexp.MustCompile(`^(add rule ip6? weft remember .*@sticky-(services|nodeports)|delete rule ip6? weft remember handle \d+|delete set ip6? weft __set\d+)$`),
}

// TestUpgradeWrites goes from the earlier version to this one, back, and again, and once without a change. Of the state, all is there
// each time, and nothing is written to the kernel but what has another shape.
func TestUpgradeWrites(t *testing.T) {
	h := newHost(t)
	h.start(old)
	h.apply(old, "durable", list("durable", "192.0.2.1", "192.0.2.2"), "--lifetime", "durable")
	h.apply(old, "sticky", list("sticky", "198.51.100.1"))
	durable, sticky := h.table("durable"), h.table("sticky")
	const claimed = "add table "
	for _, v := range []version{this, old, this, this} {
		before := h.weft.Name
		changes := h.monitored(func() {
			h.stop()
			h.start(v)
		})
		claims := slices.DeleteFunc(slices.Clone(changes), func(s string) bool { return !strings.HasPrefix(s, claimed) })
		rules := slices.DeleteFunc(slices.Clone(changes), func(s string) bool { return strings.HasPrefix(s, claimed) })
		t.Logf("%s to %s: %d tables taken over, %d other changes of the ruleset", before, v, len(claims), len(rules))
		if len(claims) != 4 {
			t.Errorf("%s to %s: %d tables taken over, want 4:\n%s", before, v, len(claims), strings.Join(claims, "\n"))
		}
		expected := func(change string) bool {
			return before != string(v) && slices.ContainsFunc(shape, func(re *regexp.Regexp) bool { return re.MatchString(change) })
		}
		if other := slices.DeleteFunc(slices.Clone(rules), expected); len(other) > 0 {
			t.Errorf("%s to %s: changes that no other shape explains:\n%s", before, v, strings.Join(other, "\n"))
		}
		if before != string(v) && len(rules) == 0 {
			t.Errorf("%s to %s: the counters of rules have not changed", before, v)
		}
		if d, s := h.table("durable"), h.table("sticky"); d != durable || s != sticky {
			t.Errorf("%s to %s: fragments of others changed:\n%s%s\nthey were\n%s%s", before, v, d, s, durable, sticky)
		}
		fragments := h.run(this, "get")
		for _, like := range []string{`uid-0/durable +0 +durable +committed`, `uid-0/sticky +0 +sticky +adopted`, `services/services +0 +sticky +committed`} {
			if !regexp.MustCompile(like).MatchString(fragments) {
				t.Errorf("%s to %s: no fragment like %q:\n%s", before, v, like, fragments)
			}
		}
		if strings.Contains(fragments, "never-read") {
			t.Errorf("%s to %s: a finding about rules whose text is not known:\n%s", before, v, fragments)
		}
	}
}

// TestUpgradeKeepsHistory has the history of this version, which the earlier one neither knows nor changes. What the earlier one
// committed is not undone by mistake.
func TestUpgradeKeepsHistory(t *testing.T) {
	h := newHost(t)
	h.start(this)
	h.apply(this, "deny", list("deny", "192.0.2.1"))
	h.apply(this, "deny", list("deny", "192.0.2.1", "192.0.2.2"))
	commits := h.run(this, "history", "-o", "json")
	h.stop()
	before := files(t, h.path("state/history.db"))
	h.start(old)
	h.apply(old, "deny", list("deny", "192.0.2.3"))
	h.stop()
	if files(t, h.path("state/history.db")) != before {
		t.Error("the earlier version changed the history")
	}
	h.start(this)
	// The history does not have what the earlier version committed, and knows that.
	revisions := regexp.MustCompile(`"revision": *"?(\d+)`).FindAllStringSubmatch(commits, -1)
	refused, err := h.node.Run(h.ctx, program(string(this)), "undo", revisions[0][1], "--socket", h.path("weft.sock"))
	if err == nil || !strings.Contains(err.Error(), "changed fragment uid-0/deny again") {
		t.Errorf("weft undo of a commit from before the downgrade: %v\n%s", err, refused)
	}
	h.apply(this, "deny", list("deny", "192.0.2.3", "192.0.2.4"))
	after := h.run(this, "history", "-o", "json")
	revision := regexp.MustCompile(`"revision": *"?\d+`)
	for _, r := range revision.FindAllString(commits, -1) {
		if !strings.Contains(after, r) {
			t.Errorf("the history has lost %s:\n%s", r, after)
		}
	}
	if was, is := len(revision.FindAllString(commits, -1)), len(revision.FindAllString(after, -1)); was < 3 || is <= was {
		t.Errorf("%d commits before the downgrade, %d after it:\n%s", was, is, after)
	}
}

// TestUpgradeUnconfirmed applies an update that is to be confirmed and goes to the earlier version, which does not know such
// updates: it stays in force there, whatever the time, and this version takes it back when it is started again.
func TestUpgradeUnconfirmed(t *testing.T) {
	h := newHost(t)
	h.start(this)
	h.apply(this, "deny", list("deny", "192.0.2.1"))
	h.apply(this, "deny", list("deny", "192.0.2.1", "192.0.2.2"), "--confirm", "1h")
	h.stop()
	tried := h.table("deny")
	h.start(old)
	if now := h.table("deny"); now != tried {
		t.Errorf("the earlier version changed what it does not know:\n%s\nit was\n%s", now, tried)
	}
	h.stop()
	h.rebooted()
	h.start(this)
	h.eventually(func() error {
		if now := h.table("deny"); strings.Contains(now, "192.0.2.2") || !strings.Contains(now, "192.0.2.1") {
			return fmt.Errorf("it was not taken back:\n%s", now)
		}
		return nil
	})
}

// rebooted makes the time of updates that were not confirmed be over, as a reboot does: their files name another one.
func (h *host) rebooted() {
	h.t.Helper()
	all, err := filepath.Glob(h.path("state/unconfirmed/*.json"))
	if err != nil || len(all) != 1 {
		h.t.Fatalf("files of updates that were not confirmed: %v (%v), want one", all, err)
	}
	b, err := os.ReadFile(all[0])
	if err != nil {
		h.t.Fatal(err)
	}
	text := regexp.MustCompile(`"boot":"[^"]*"`).ReplaceAllString(string(b), `"boot":"another"`)
	if err := os.WriteFile(all[0], []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

const configuration = `apiVersion: weft.dev/v1alpha1
kind: Configuration
publishers:
  - name: agent
    match: {uid: 981}
`

// TestUpgradeBeyondFormat goes back to a version that cannot read the state directory, because it has what that version does not
// know: durable fragments of a publisher of the configuration. The earlier version refuses it and changes nothing, and the steps of
// deploy/docs/operating.md lead to it.
func TestUpgradeBeyondFormat(t *testing.T) {
	h := newHost(t)
	config := h.write("config.yaml", configuration)
	h.start(this, "--config", config)
	h.apply(this, "list", list("agent", "192.0.2.1", "192.0.2.2"), "--publisher", "agent", "--lifetime", "durable")
	h.apply(this, "sticky", list("sticky", "198.51.100.1"))
	agent, sticky := h.table("agent"), h.table("sticky")
	h.stop()

	before := files(t, h.path("state"))
	h.launch(old)
	<-h.weft.Done()
	refused := h.weft.Tail(5)
	t.Logf("the earlier version says: %s", refused)
	if want := "state directory has another format: its version is 2, and this weft reads version 1: start the version of weft that wrote it"; !strings.Contains(refused, want) || !strings.Contains(refused, h.path("state")) {
		t.Errorf("the earlier version ends with\n%s\nwant %q", refused, want)
	}
	if now := files(t, h.path("state")); now != before {
		t.Errorf("the earlier version changed the state directory:\n%s\nit was\n%s", now, before)
	}
	if h.table("agent") != agent || h.table("sticky") != sticky {
		t.Error("the earlier version changed rules")
	}

	// 1. The version that wrote the directory saves the durable fragments.
	h.start(this, "--config", config)
	saved := h.run(this, "get", "agent/list", "-o", "nft")
	h.stop()
	// 2. The directory is moved away, and the earlier version started.
	if err := os.Rename(h.path("state"), h.path("state.newer")); err != nil {
		t.Fatal(err)
	}
	h.launch(old)
	h.eventually(func() error { return ready(h.ctx, h.node) })
	if h.table("agent") != agent || h.table("sticky") != sticky {
		t.Error("rules changed when the earlier version started without the directory")
	}
	// 3. The fragments are applied again.
	h.apply(old, "list", saved, "--publisher", "agent", "--lifetime", "durable")
	h.apply(old, "sticky", list("sticky", "198.51.100.1"))
	if a, s := h.table("agent"), h.table("sticky"); a != agent || s != sticky {
		t.Errorf("rules changed when they were applied again:\n%s%s\nthey were\n%s%s", a, s, agent, sticky)
	}
	h.stop()
	// The fragments are durable there, and this version reads them from the earlier one, which started without a
	// record and so left what it does not know, such as the counters of this version.
	h.unclaimed = true
	h.start(this, "--config", config)
	if a, s := h.table("agent"), h.table("sticky"); a != agent || s != sticky {
		t.Errorf("rules changed on the way back:\n%s%s\nthey were\n%s%s", a, s, agent, sticky)
	}
	if all := h.run(this, "get"); !regexp.MustCompile(`agent/list +0 +durable +committed`).MatchString(all) {
		t.Errorf("the durable fragment is not there:\n%s", all)
	}
}
