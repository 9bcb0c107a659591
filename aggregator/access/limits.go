package access

import (
	"fmt"
	"maps"
	"time"
)

// The default limits of publishers except administrators and the system.
const (
	// a tenth of the limit of all publishers
	DefaultFragments = 1_000
	// DefaultChains allows a chain for each of 100,000 endpoints and 10,000 services. If a
	// configured limit of rules plus DefaultEmpty is lower, it is the default. Likewise for sets,
	// with the limit of elements.
	DefaultChains     = 200_000
	DefaultEmpty      = 1_000
	DefaultBaseChains = 64
	// DefaultSets bounds the kernel's time to look up a set, which compares names.
	DefaultSets = 10_000
	// two for each chain
	DefaultRules = 2 * DefaultChains
	// four for each of 1,000,000 endpoints
	DefaultElements = 4_000_000
	// bytes of kernel memory; 100,000 endpoints take less than half
	DefaultMemory = 256 << 20
	// nanoseconds of a packet at one hook, in the worst case and for every packet
	DefaultPacket      = 500_000
	DefaultEveryPacket = 20_000
)

// The fixed limits, for the same publishers.
const (
	// MaxHookChains is the number of all publishers' base chains at a hook of a family. The kernel
	// allows 1,024 (MAX_HOOK_COUNT in net/netfilter/core.c); the rest is for the system and other
	// programs.
	MaxHookChains = 512
	// MinGCInterval is the shortest gc-interval, and the kernel's default.
	MinGCInterval = time.Second
	// MaxTimeout is the longest timeout and gc-interval: ten years, which fits the kernel's units.
	MaxTimeout = 10 * 365 * 24 * time.Hour
)

var defaultLimits = map[Limit]int{
	LimitFragments: DefaultFragments, LimitChains: DefaultChains, LimitBaseChains: DefaultBaseChains, LimitSets: DefaultSets, LimitMemory: DefaultMemory,
	LimitPacket: DefaultPacket, LimitEveryPacket: DefaultEveryPacket, LimitRules: DefaultRules, LimitElements: DefaultElements,
}

// contentOf has the limit that lowers the default of another.
var contentOf = map[Limit]Limit{LimitChains: LimitRules, LimitSets: LimitElements}

// Limited reports whether a publisher has the default limits. p is nil for a publisher outside the
// configuration.
func (p *Publisher) Limited() bool { return p != nil && !p.Admin && !p.System }

func (p *Publisher) setDefaults() {
	if !p.Limited() {
		return
	}
	configured := maps.Clone(p.Limits.Most)
	for limit, most := range defaultLimits {
		if content := configured[contentOf[limit]]; content > 0 {
			most = min(most, content+DefaultEmpty)
		}
		if p.Limits.Most[limit] == 0 {
			p.Limits.Most[limit] = most
		}
	}
}

// Packet refuses n nanoseconds over a limit: LimitPacket or LimitEveryPacket. path returns the
// place for the message.
func (p *Publisher) Packet(limit Limit, n int, hook string, path func() string) *Refusal {
	if !p.Limits.exceeded(limit, n) {
		return nil
	}
	asked, advice := "makes a packet take up to %v at hook %s (%s)", "use sets and verdict maps, smaller sets with concatenated ranges, fewer jumps, or ct count over a small number with drop"
	if limit == LimitEveryPacket {
		asked, advice = "makes every packet take %v at hook %s (%s)", "use sets and verdict maps, or jump to the rules only with the packets that they are for"
	}
	return p.refuse(limit, "limits."+string(limit), fmt.Sprintf(asked, time.Duration(n), hook, path()),
		fmt.Sprintf("at most %v are allowed: %s", time.Duration(p.Limits.Most[limit]), advice))
}

// HookChains refuses base chain number n at a hook.
func (p *Publisher) HookChains(hook string, n int) *Refusal {
	if !p.Limited() || n <= MaxHookChains {
		return nil
	}
	return &Refusal{Limit: LimitHookChains, Publisher: p.Name, Text: fmt.Sprintf(
		"publisher %s would add base chain %d to hook %s: %d are allowed, the others are reserved for the system: use the base chains that there are, or set system for the publisher at %s",
		p.Name, n, hook, MaxHookChains, p.begin())}
}

// Times refuses a timeout or gc-interval out of bounds. 0 means unset.
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
