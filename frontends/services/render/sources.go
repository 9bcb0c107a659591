package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// sources are the prefixes that may reach a listener, in rule syntax: noSources for an empty list, "" for
// all. Listeners with equal sources share a chain.
type sources string

const noSources sources = "none"

const (
	// Prefixes of chains that drop other sources, and of chains before a listener's chain.
	sourcesPrefix = "sources-"
	limitedPrefix = "limited-"
)

// Nil ranges allow all; empty ranges reject all.
func sourcesOf(ranges []netip.Prefix, f model.Family) sources {
	switch texts := prefixTexts(ranges, f); {
	case ranges == nil:
		return ""
	case len(texts) == 0:
		return noSources
	default:
		return sources(strings.Join(texts, ", "))
	}
}

// id is the same on every node.
func (s sources) id() string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

func (s sources) chain(t *table, cfg *Config) *weftv1.Chain {
	match := ""
	switch {
	case s == noSources:
	case strings.Contains(string(s), ","):
		match = "ip saddr != { " + string(s) + " } "
	default:
		match = "ip saddr != " + string(s) + " "
	}
	return chain(sourcesPrefix+s.id(), t.names.spell(match)+cfg.drop(SourceRanges, "drop")+` comment "source not in loadBalancerSourceRanges"`)
}

// limited is a chain that checks the sources again after the lookup of the listener. During a commit a packet
// may see the old rules in the firewall hook and the new rules in the listener's hook, because the kernel
// reads the generation anew for each hook.
type limited struct {
	sources sources
	to      string
}

func (l limited) compare(o limited) int {
	return cmp.Or(cmp.Compare(l.sources, o.sources), strings.Compare(l.to, o.to))
}

func (l limited) name() string { return limitedPrefix + l.sources.id() + "-" + l.to }

func (l limited) chain() *weftv1.Chain {
	return chain(l.name(), "jump "+sourcesPrefix+l.sources.id(), "goto "+l.to)
}

func (f *listener) limited() (l limited, ok bool) {
	if v := f.verdicts[roleService]; f.sources != "" && v.to != absent {
		return limited{f.sources, strings.TrimPrefix(string(v.append(nil, f.sticky)), "goto ")}, true
	}
	return l, false
}

func (f *listener) appendValue(b []byte, r role) []byte {
	if r == roleLimited {
		return append(append(b, "goto "+sourcesPrefix...), f.sources.id()...)
	}
	if l, ok := f.limited(); ok && r == roleService {
		return append(append(b, "goto "...), l.name()...)
	}
	return f.verdicts[r].append(b, f.sticky)
}

func (f *listener) sameValue(was *listener, r role) bool {
	return was.verdicts[r] == f.verdicts[r] && (was.sources == f.sources || r != roleService && r != roleLimited)
}
