package lint

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
)

// ID names a kind of finding.
type ID string

// The kinds of findings.
const (
	// AcceptOverridden is an accept overridden by a drop of another party's base chain at the hook, with
	// a later or equal priority.
	AcceptOverridden ID = "accept-overridden"
	// EqualPriority is two parties' base chains with the same hook and priority, which translate in
	// accidental order.
	EqualPriority ID = "equal-priority"
	// MarkCollision is mark bits written by one party, and written or matched by another.
	MarkCollision ID = "mark-collision"
	// NeverMatches is a rule that cannot match any packet.
	NeverMatches ID = "never-matches"
	// NeverRead is a set or map with elements but without readers.
	NeverRead ID = "never-read"
	// CutOff is a drop of traffic required by the node.
	CutOff ID = "cut-off"
)

// IDs are all kinds.
var IDs = []ID{AcceptOverridden, EqualPriority, MarkCollision, NeverMatches, NeverRead, CutOff}

// Finding is a mistake in a ruleset.
type Finding struct {
	ID ID
	// zero without another party
	Subject, Other Place
	// Text names both parties and no rule. Text and Remedy end without a full stop.
	Text, Remedy string
	Example      string
	// unreported findings of the same kind, parties and chains
	More int
}

// Rules returns the places of the parties, the Subject first, without the text of a party for which
// sees returns false.
func (f *Finding) Rules(sees func(Party) bool) []string {
	var out []string
	for _, p := range []Place{f.Subject, f.Other} {
		if p.Rule != "" && sees != nil && !sees(p.Party) {
			out = append(out, p.with("a rule"))
		} else if p.Table.Name != "" {
			out = append(out, p.String())
		}
	}
	return out
}

// String formats the finding in a few lines.
func (f *Finding) String() string {
	return Format(string(f.ID), f.Text, f.Remedy, f.Rules(nil), f.Example, f.More)
}

// Format formats a finding: cause, remedy, rules, example.
func Format(id, text, remedy string, rules []string, example string, more int) string {
	b := strings.Join(append([]string{fmt.Sprintf("%s: %s. %s.", id, text, remedy)}, rules...), "\n  ")
	if more > 0 {
		b += fmt.Sprintf("\n  and %d more like this", more)
	}
	if example != "" {
		b += "\n  for example: " + example
	}
	return b
}

// Place is a rule, the policy of a base chain, or a set.
type Place struct {
	Party Party
	Table nft.TableID
	// empty for a set
	Chain, Set string
	// eval.Rule.String, or empty for a policy
	Rule string
}

// String describes the place with the rule's text.
func (p Place) String() string {
	if p.Rule == "" || strings.HasPrefix(p.Rule, eval.HandleWord) {
		return p.with(p.Rule)
	}
	return p.with(strconv.Quote(p.Rule))
}

// A party known only by its table is not named.
func (p Place) with(rule string) string {
	text := fmt.Sprintf("%s in chain %s of table %s", rule, p.Chain, p.Table)
	switch {
	case p.Set != "":
		text = fmt.Sprintf("set %s of table %s", p.Set, p.Table)
	case rule == "":
		text = fmt.Sprintf("the policy of chain %s of table %s", p.Chain, p.Table)
	}
	if p.Party.Fragment != "" || p.Party.Program != "" {
		text += " (" + p.Party.String() + ")"
	}
	return text
}

// Party is an author of rules: a fragment of weft, or another program.
type Party struct {
	// "publisher/name", or the name of a file to publish
	Fragment string
	// from names of tables and chains; may be empty
	Program string
	// for a party without a Fragment
	Table nft.TableID
}

// String returns the party's name in a sentence.
func (p Party) String() string {
	if p.Fragment != "" {
		return "fragment " + p.Fragment
	}
	return cmp.Or(p.Program, "table "+p.Table.String())
}

// All fragments of a publisher are one party. So are all tables without fragments and of no known
// program: they may have one author.
func (p Party) key() string {
	publisher, _, ok := strings.Cut(p.Fragment, "/")
	switch {
	case ok:
		return "publisher " + publisher
	case p.Fragment != "":
		return "files"
	default:
		return p.Program
	}
}

// by table, or prefix of chains in iptables' tables
var programs = []struct{ program, table, chain string }{
	{"kube-proxy", "kube-proxy", ""},
	{"kube-proxy", "", "KUBE-"},
	{"docker", "docker-bridges", ""},
	{"docker", "", "DOCKER"},
	{"libvirt", "libvirt_network", ""},
	{"libvirt", "", "LIBVIRT_"},
	{"firewalld", "firewalld", ""},
	{"calico", "calico", ""},
	{"calico", "", "cali-"},
	{"cilium", "", "CILIUM_"},
	{"flannel", "flannel-ipv4", ""},
	{"flannel", "flannel-ipv6", ""},
	{"flannel", "", "FLANNEL-"},
	{"CNI plugins", "cni_hostport", ""},
	{"CNI plugins", "", "CNI-"},
	{"kindnet", "kindnet-network-policies", ""},
	{"podman", "netavark", ""},
	{"podman", "", "NETAVARK"},
	{"LXC", "lxc", ""},
	{"LXD", "lxd", ""},
	{"Incus", "incus", ""},
	{"Tailscale", "", "ts-"},
	{"ufw", "", "ufw-"},
	{"ufw", "", "ufw6-"},
	{"fail2ban", "f2b-table", ""},
	{"fail2ban", "", "f2b-"},
	{"CrowdSec", "crowdsec", ""},
	{"CrowdSec", "crowdsec6", ""},
	{"MiniUPnP", "miniupnpd", ""},
	{"MiniUPnP", "", "MINIUPNPD"},
	{"Istio", "", "ISTIO_"},
}

func partyOf(t nft.TableID, chain string) Party {
	for _, p := range programs {
		if p.table != "" && p.table == t.Name || p.chain != "" && strings.HasPrefix(chain, p.chain) {
			return Party{Program: p.program, Table: t}
		}
	}
	return Party{Table: t}
}
