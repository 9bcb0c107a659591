package migration

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shape is the writes of an update between the two versions besides the takeover of tables: rules count
// only in this version, and only its session affinity has rules of ports.
var shape = []*regexp.Regexp{
	// Rules that drop or reject count by reason, and rules that pick an endpoint count by listener.
	regexp.MustCompile(`^delete rule ip6? weft (firewall|reject-chain|drop-chain|unserved|(nodeport-)?pick-\d+) handle \d+$`),
	regexp.MustCompile(`^(add|insert) rule ip6? weft (reject-chain|drop-chain|unserved) .*(drop|reject)`),
	regexp.MustCompile(`^(add|insert) rule ip6? weft (nodeport-)?pick-\d+ .*@(service|nodeport)-connections$`),
	// Source ranges have a map of chains; the earlier version has sets.
	regexp.MustCompile(`^(add|insert) rule ip6? weft firewall .*@(source-ranges|firewalled)( |$)`),
	regexp.MustCompile(`^(add map|add set|delete set) ip6? weft (source-ranges|firewalled|allowed-sources)( |$)`),
	regexp.MustCompile(`^(create|add|delete) chain ip6? weft drop-chain`),
	regexp.MustCompile(`^(create|add|delete) counter ip6? weft dropped-`),
	regexp.MustCompile(`^(add|delete) (set|element) ip6? weft (service|nodeport)-connections`),
	// Session affinity has rules of ports; the earlier version has a verdict for each endpoint.
	regexp.MustCompile(`^(add map|delete set) ip6? weft (nodeport-)?sticky-(services|nodeports|endpoints)( |$)`),
	regexp.MustCompile(`^(create|delete) chain ip6? weft remember$`),
	regexp.MustCompile(`^(add rule ip6? weft remember .*@sticky-(services|nodeports)|delete rule ip6? weft remember handle \d+|delete set ip6? weft __set\d+)$`),
}

// TestUpgradeWrites goes from the earlier version to this one, back, and again, and once without a
// change. Neither version reads the other's state directory. The rules stay, and the kernel gets only
// writes in shape.
func TestUpgradeWrites(t *testing.T) {
	h := newHost(t)
	h.start(old)
	h.apply(old, "durable", list("durable", "192.0.2.1", "192.0.2.2"), "--lifetime", "durable")
	h.apply(old, "sticky", list("sticky", "198.51.100.1"))
	durable, sticky := h.table("durable"), h.table("sticky")
	const claimed = "add table "
	// No version has a record of the content of "sticky", which is applied once.
	h.unclaimed = true
	for _, v := range []version{this, old, this, this} {
		before := h.weft.Name
		changes := h.monitored(func() {
			h.stop()
			h.start(v)
		})
		h.apply(v, "durable", list("durable", "192.0.2.1", "192.0.2.2"), "--lifetime", "durable")
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

const configuration = `apiVersion: weft.dev/v1alpha1
kind: Configuration
publishers:
  - name: agent
    match: {uid: 981}
`

// TestDowngrade: the earlier version starts beside this version's state. The rules stay, and the
// steps of deploy/docs/operating.md bring durable fragments along.
func TestDowngrade(t *testing.T) {
	h := newHost(t)
	config := h.write("config.yaml", configuration)
	h.start(this, "--config", config)
	h.apply(this, "list", list("agent", "192.0.2.1", "192.0.2.2"), "--publisher", "agent", "--lifetime", "durable")
	h.apply(this, "sticky", list("sticky", "198.51.100.1"))
	agent, sticky := h.table("agent"), h.table("sticky")
	// 1. This version saves the durable fragments.
	saved := h.run(this, "get", "agent/list", "-o", "nft")
	h.stop()
	// 2. The earlier version starts.
	h.launch(old)
	h.eventually(func() error { return ready(h.ctx, h.node) })
	if h.table("agent") != agent || h.table("sticky") != sticky {
		t.Error("rules changed when the earlier version started")
	}
	// 3. The fragments are applied again.
	h.apply(old, "list", saved, "--publisher", "agent", "--lifetime", "durable")
	h.apply(old, "sticky", list("sticky", "198.51.100.1"))
	if a, s := h.table("agent"), h.table("sticky"); a != agent || s != sticky {
		t.Errorf("rules changed when they were applied again:\n%s%s\nthey were\n%s%s", a, s, agent, sticky)
	}
	h.stop()
	// This version moves the earlier directory away. The rules stay, and the fragments are applied
	// again.
	h.unclaimed = true
	h.start(this, "--config", config)
	if a, s := h.table("agent"), h.table("sticky"); a != agent || s != sticky {
		t.Errorf("rules changed on the way back:\n%s%s\nthey were\n%s%s", a, s, agent, sticky)
	}
	if _, err := os.Stat(h.path("state/state.db.other-format")); err != nil {
		t.Error(err)
	}
	h.apply(this, "list", saved, "--publisher", "agent", "--lifetime", "durable")
	if a := h.table("agent"); a != agent {
		t.Errorf("rules changed when they were applied again:\n%s\nthey were\n%s", a, agent)
	}
	if all := h.run(this, "get"); !regexp.MustCompile(`agent/list +0 +durable +committed`).MatchString(all) {
		t.Errorf("the durable fragment is not there:\n%s", all)
	}
}
