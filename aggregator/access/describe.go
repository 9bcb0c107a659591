package access

import (
	"fmt"

	"github.com/weft-proxy/weft/nft"
)

// Right is a right or limit of a publisher, for people.
type Right struct {
	// Name is that of the field of the configuration, such as "allow.nat".
	Name  string
	Value string
	// Where says which line decides.
	Where string
}

// Rights returns all rights and limits of the publisher.
func (p *Publisher) Rights() []Right {
	var all []Right
	add := func(name, value string) { all = append(all, Right{name, value, p.where(name)}) }
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
	add("priorities", p.Priorities.String())
	add("admin", yes(p.Admin))
	add("read", yes(p.Read))
	add("system", yes(p.System))
	for _, l := range counted() {
		value := "unlimited"
		if most := p.Limits.Most[l]; most != 0 {
			value = fmt.Sprint(most)
		}
		add("limits."+string(l), value)
	}
	rate := "unlimited"
	if p.Limits.UpdatesPerSecond != 0 {
		rate = fmt.Sprintf("%v, and %d at once", p.Limits.UpdatesPerSecond, p.Limits.Burst)
	}
	add("limits."+string(LimitUpdates), rate)
	return all
}

// granted returns whether, or how much, the publisher may use a class.
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

// listOrAll lists words; nil means all.
func listOrAll[T any](words []T) string {
	if words == nil {
		return "all"
	}
	return join(words)
}
