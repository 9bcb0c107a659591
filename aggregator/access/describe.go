package access

import (
	"fmt"

	"github.com/weft-proxy/weft/nft"
)

// Right is a right or limit of a publisher, for people.
type Right struct {
	// in the configuration, such as "allow.nat"
	Name  string
	Value string
	// the line that decides, or a note without a line
	Where string
}

const fixed = "fixed"

// Rights returns all rights and limits of the publisher.
func (p *Publisher) Rights() []Right {
	var all []Right
	add := func(name, value string) { all = append(all, Right{name, value, p.Where(name)}) }
	tables := p.Name
	if p.Allow.Tables != nil {
		tables = join(p.Allow.Tables)
	}
	add("allow.tables", tables)
	add("allow.families", listOrAll(p.Allow.Families))
	add("allow.hooks", listOrAll(p.Allow.Hooks))
	add("allow.chainPriorities", p.Allow.ChainPriorities.String())
	add("allow.devices", join(p.Allow.Devices))
	for _, c := range nft.Classes() {
		if c != nft.ClassFilter {
			add("allow."+c.String(), p.granted(c))
		}
	}
	add("allow.masqueradeMark", yes(p.Allow.Marks&MasqueradeMark != 0))
	add("allow.shared", join(p.Allow.Shared))
	add("accept", p.Accept.String())
	add("priorities", p.Priorities.String())
	add("admin", yes(p.Admin))
	add("read", yes(p.Read))
	add("flows", yes(p.Flows))
	add("system", yes(p.System))
	for _, l := range Counted() {
		all = append(all, Right{"limits." + string(l), p.most(l), p.whereLimit(l)})
	}
	rate, burst := "unlimited", "unlimited"
	if p.Limits.UpdatesPerSecond != 0 {
		rate, burst = fmt.Sprint(p.Limits.UpdatesPerSecond), fmt.Sprint(p.Limits.Burst)
	}
	add("limits."+string(LimitUpdates), rate)
	all = append(all, Right{"limits.burst", burst, p.whereBurst()})
	return append(all, p.fixedLimits()...)
}

func (p *Publisher) most(l Limit) string {
	most := p.Limits.Most[l]
	switch {
	case most == 0:
		return "unlimited"
	case (l == LimitMemory || l == LimitBytes) && most%(1<<20) == 0:
		return fmt.Sprintf("%dMi", most>>20)
	default:
		return fmt.Sprint(most)
	}
}

func (p *Publisher) whereLimit(l Limit) string {
	field := "limits." + string(l)
	content := contentOf(l)
	if !p.sets(field) && p.Limited() && content != "" && p.Limits.Most[content] > 0 && p.Limits.Most[l] == p.Limits.Most[content]+DefaultEmpty {
		return fmt.Sprintf("the default: %d more than %s", DefaultEmpty, p.Where("limits."+string(content)))
	}
	return p.Where(field)
}

func (p *Publisher) whereBurst() string {
	if !p.sets("limits.burst") && p.Limits.UpdatesPerSecond != 0 {
		return "the default: one second of " + p.Where("limits."+string(LimitUpdates))
	}
	return p.Where("limits.burst")
}

func (p *Publisher) sets(field string) bool {
	return p.line(field) != 0 || p.positions["defaults."+field] != 0
}

func (p *Publisher) fixedLimits() []Right {
	hookChains, timeout, gcInterval := "unlimited", "unlimited", "unlimited"
	if p.Limited() {
		hookChains = fmt.Sprintf("refused where all publishers have %d", MaxHookChains)
		timeout = fmt.Sprintf("at most %v", MaxTimeout)
		gcInterval = fmt.Sprintf("at least %v", MinGCInterval)
	}
	return []Right{
		{"base chains at one hook", hookChains, fixed},
		{"timeout of elements", timeout, fixed},
		{"gc-interval of sets", gcInterval, fixed},
	}
}

func (p *Publisher) granted(c nft.Class) string {
	switch {
	case !p.Allow.Classes.Has(c):
		return "no"
	case c == nft.ClassMarks:
		return fmt.Sprintf("0x%08x", p.Allow.Marks)
	case c == nft.ClassLog && p.Allow.LogRate == UnlimitedLog:
		return "unlimited"
	case c == nft.ClassLog:
		return fmt.Sprintf("%d packets a second", p.Allow.LogRate)
	default:
		return "yes"
	}
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func listOrAll[T any](words []T) string {
	if words == nil {
		return "all"
	}
	return join(words)
}
