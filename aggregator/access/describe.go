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
			add("allow."+c.String(), p.Allow.granted(c))
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
		where := p.Where("limits." + string(l))
		if content := contentOf[l]; p.Limited() && !p.set("limits."+string(l)) && p.Limits.Most[content] > 0 && p.Limits.Most[l] == p.Limits.Most[content]+DefaultEmpty {
			where = fmt.Sprintf("the default: %d more than %s", DefaultEmpty, p.Where("limits."+string(content)))
		}
		all = append(all, Right{"limits." + string(l), p.Limits.text(l), where})
	}
	const rateField, burstField = "limits." + string(LimitUpdates), "limits.burst"
	rate, burst, whereBurst := "unlimited", "unlimited", p.Where(burstField)
	if p.Limits.UpdatesPerSecond != 0 {
		rate, burst = fmt.Sprint(p.Limits.UpdatesPerSecond), fmt.Sprint(p.Limits.Burst)
		if !p.set(burstField) {
			whereBurst = "the default: one second of " + p.Where(rateField)
		}
	}
	add(rateField, rate)
	hookChains, timeout, gcInterval := "unlimited", "unlimited", "unlimited"
	if p.Limited() {
		hookChains = fmt.Sprintf("refused where all publishers have %d", MaxHookChains)
		timeout = fmt.Sprintf("at most %v", MaxTimeout)
		gcInterval = fmt.Sprintf("at least %v", MinGCInterval)
	}
	return append(all,
		Right{burstField, burst, whereBurst},
		Right{"base chains at one hook", hookChains, fixed},
		Right{"timeout of elements", timeout, fixed},
		Right{"gc-interval of sets", gcInterval, fixed})
}

func (l *Limits) text(limit Limit) string {
	most := l.Most[limit]
	switch {
	case most == 0:
		return "unlimited"
	case (limit == LimitMemory || limit == LimitBytes) && most%(1<<20) == 0:
		return fmt.Sprintf("%dMi", most>>20)
	default:
		return fmt.Sprint(most)
	}
}

func (a *Allow) granted(c nft.Class) string {
	switch {
	case !a.Classes.Has(c):
		return "no"
	case c == nft.ClassMarks:
		return fmt.Sprintf("0x%08x", a.Marks)
	case c == nft.ClassLog && a.LogRate == UnlimitedLog:
		return "unlimited"
	case c == nft.ClassLog:
		return fmt.Sprintf("%d packets a second", a.LogRate)
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
