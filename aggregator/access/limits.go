package access

import (
	"fmt"
	"maps"
	"time"
)

// The limits of publishers that are not administrators and not of the system, if the
// configuration does not set others. They bound what one publisher can take from the
// others and from the packets; rulesets of real agents stay far below them.
const (
	// DefaultFragments is a tenth of what all publishers together may have.
	DefaultFragments = 1_000
	// DefaultChains is enough for a chain for each of 100,000 endpoints and 10,000
	// services. Chains without rules are of no use: if the number of rules is limited, it is
	// that number and DefaultEmpty more, and likewise for sets and elements.
	DefaultChains = 200_000
	DefaultEmpty  = 1_000
	// DefaultBaseChains is enough for all hooks of all families at several priorities.
	DefaultBaseChains = 64
	// DefaultSets bounds the time of the kernel, which looks up a set by comparing names.
	DefaultSets = 10_000
	// DefaultRules is two for each of the chains.
	DefaultRules = 2 * DefaultChains
	// DefaultElements is four for each of 1,000,000 endpoints.
	DefaultElements = 4_000_000
	// DefaultMemory is the memory of the kernel in bytes. 100,000 endpoints take less than
	// half of it.
	DefaultMemory = 256 << 20
	// DefaultPacket is what a packet pays at one hook in the worst case, in nanoseconds, and
	// DefaultEveryPacket what no packet is spared. 200 jumps to chains of 100 rules reach the
	// first, and 500 rules of a base chain the second.
	DefaultPacket      = 500_000
	DefaultEveryPacket = 20_000
)

// The limits that no configuration changes. They hold for publishers that are not
// administrators and not of the system.
const (
	// MaxHookChains is the number of base chains of all programs' publishers at one hook
	// of a family. The kernel allows 1,024 (MAX_HOOK_COUNT in net/netfilter/core.c): the
	// rest is for publishers of the system and for programs beside weft.
	MaxHookChains = 512
	// MinGCInterval is how often the kernel may look for elements that have timed out. It
	// is also what the kernel does without a gc-interval.
	MinGCInterval = time.Second
	// MaxTimeout is the longest timeout of an element and the longest gc-interval: ten
	// years, which the kernel can keep in every unit that it uses.
	MaxTimeout = 10 * 365 * 24 * time.Hour
)

// defaultLimits returns the limits that hold if the configuration does not set others.
func defaultLimits() map[Limit]int {
	return map[Limit]int{
		LimitFragments: DefaultFragments, LimitChains: DefaultChains, LimitBaseChains: DefaultBaseChains,
		LimitSets: DefaultSets, LimitMemory: DefaultMemory, LimitPacket: DefaultPacket, LimitEveryPacket: DefaultEveryPacket, LimitRules: DefaultRules, LimitElements: DefaultElements,
	}
}

// Limited reports whether a publisher has the limits that the configuration does not set.
// Administrators and publishers of the system do not, and p is nil for a publisher that is
// not configured.
func (p *Publisher) Limited() bool { return p != nil && !p.Admin && !p.System }

// setDefaults gives a publisher the limits that neither it nor the defaults of the file
// set.
func (p *Publisher) setDefaults() {
	if !p.Limited() {
		return
	}
	configured := maps.Clone(p.Limits.Most)
	for limit, most := range defaultLimits() {
		if content := configured[contentOf(limit)]; content > 0 {
			most = min(most, content+DefaultEmpty)
		}
		if p.Limits.Most[limit] == 0 {
			p.Limits.Most[limit] = most
		}
	}
}

// contentOf returns the limit of what chains or sets contain, else "".
func contentOf(l Limit) Limit {
	switch l {
	case LimitChains:
		return LimitRules
	case LimitSets:
		return LimitElements
	default:
		return ""
	}
}

// Packet returns a Refusal if an update makes packets pay more nanoseconds than limit allows,
// which is LimitPacket or LimitEveryPacket, else nil. The path says where: it is called for the
// message.
func (p *Publisher) Packet(limit Limit, n int, hook string, path func() string) *Refusal {
	if !p.exceeds(limit, n) {
		return nil
	}
	asked, advice := "makes a packet take up to %v at hook %s (%s)", "use sets and verdict maps, smaller sets with concatenated ranges, fewer jumps, or ct count over a small number with drop"
	if limit == LimitEveryPacket {
		asked, advice = "makes every packet take %v at hook %s (%s)", "use sets and verdict maps, or jump to the rules only with the packets that they are for"
	}
	return p.refuse(limit, "limits."+string(limit), fmt.Sprintf(asked, time.Duration(n), hook, path()),
		fmt.Sprintf("at most %v are allowed: %s", time.Duration(p.Limits.Most[limit]), advice))
}

// HookChains returns a Refusal if a publisher adds the base chain with number n to a hook
// where it may not have so many, else nil.
func (p *Publisher) HookChains(hook string, n int) *Refusal {
	if !p.Limited() || n <= MaxHookChains {
		return nil
	}
	return &Refusal{Limit: LimitHookChains, Publisher: p.Name, Text: fmt.Sprintf(
		"publisher %s would add base chain %d to hook %s: %d are allowed, the others are reserved for the system: use the base chains that there are, or set system for the publisher at %s:%d",
		p.Name, n, hook, MaxHookChains, p.file, p.lines[""])}
}

// Times returns a Refusal if a timeout or gc-interval is out of bounds, else nil; 0 means
// that it is not set.
func (p *Publisher) Times(timeout, gcInterval time.Duration) *Refusal {
	refuse := func(what string, d time.Duration, bound string) *Refusal {
		return &Refusal{Limit: LimitTimes, Publisher: p.Name, Text: fmt.Sprintf("publisher %s declares a %s of %v: %s is allowed", p.Name, what, d, bound)}
	}
	switch {
	case !p.Limited():
	case timeout < 0 || timeout > MaxTimeout:
		return refuse("timeout", timeout, fmt.Sprintf("at most %v", MaxTimeout))
	case gcInterval != 0 && gcInterval < MinGCInterval:
		return refuse("gc-interval", gcInterval, fmt.Sprintf("at least %v", MinGCInterval))
	case gcInterval > MaxTimeout:
		return refuse("gc-interval", gcInterval, fmt.Sprintf("at most %v", MaxTimeout))
	}
	return nil
}
