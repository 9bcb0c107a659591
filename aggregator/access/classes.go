package access

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/weft-proxy/weft/nft"
)

// BaseChain is a base chain for [Publisher.Chain].
type BaseChain struct {
	// in nft's words
	Hook, Type string
	Priority   int32
	// policy drop
	Drop    bool
	Devices []string
}

// Chain returns all refusals of a base chain.
func (p *Publisher) Chain(c BaseChain) []*Refusal {
	var all []*Refusal
	add := func(r *Refusal) {
		if r != nil {
			all = append(all, r)
		}
	}
	if p.Allow.Hooks != nil && !slices.Contains(p.Allow.Hooks, c.Hook) {
		add(p.refuse(LimitHook, "allow.hooks", "may not use hook "+c.Hook, "allowed hooks are "+join(p.Allow.Hooks)))
	}
	switch c.Type {
	case "filter":
	case "nat":
		add(p.class(nft.ClassNAT, "have base chains of type nat"))
	default:
		add(p.class(nft.ClassRoute, "have base chains of type "+clip(c.Type)))
	}
	if c.Drop {
		add(p.Class(nft.ClassPolicyDrop))
	}
	if !p.Allow.ChainPriorities.Has(c.Priority) {
		add(p.refuse(LimitChainPriority, "allow.chainPriorities", fmt.Sprintf("may not use chain priority %d", c.Priority),
			"allowed is "+p.Allow.ChainPriorities.String()))
	}
	add(p.Devices(c.Devices))
	return all
}

// Class refuses a class.
func (p *Publisher) Class(c nft.Class) *Refusal { return p.class(c, c.Does()) }

func (p *Publisher) class(c nft.Class, does string) *Refusal {
	if c == nft.ClassFilter || p.Allow.Classes.Has(c) {
		return nil
	}
	return p.refuse(Limit(c.String()), "allow."+c.String(), "may not "+does, c.String()+" is not allowed")
}

// Lacks returns the classes of a set without the publisher's right.
func (p *Publisher) Lacks(want nft.ClassSet) nft.ClassSet {
	return want &^ p.Allow.Classes.With(nft.ClassFilter)
}

// Marks refuses rules that change bits of the packet mark.
func (p *Publisher) Marks(bits uint32) *Refusal {
	wrong := bits &^ p.Allow.Marks
	switch {
	case wrong == 0:
		return nil
	case p.Allow.Marks == 0:
		return p.Class(nft.ClassMarks)
	}
	allowed := fmt.Sprintf("allowed bits are 0x%08x: write meta mark set meta mark & 0x%08x | VALUE", p.Allow.Marks, ^p.Allow.Marks)
	if wrong&MasqueradeMark != 0 {
		allowed += fmt.Sprintf("; 0x%08x, by which Services masquerade, needs masqueradeMark", MasqueradeMark)
	}
	return p.refuse(Limit(nft.ClassMarks.String()), "allow.marks", fmt.Sprintf("may not change the bits 0x%08x of the packet mark", wrong), allowed)
}

// seconds: the period of log rates
const hour = 3600

// Logs refuses a growth of the packets logged an hour from before to after. An excess may stay.
func (p *Publisher) Logs(before, after int) *Refusal {
	if after <= before || p.Allow.LogRate == UnlimitedLog || after <= hour*p.Allow.LogRate {
		return nil
	}
	return p.refuse(Limit(nft.ClassLog.String()), "allow.log", fmt.Sprintf("would log up to %s packets a second, and logs %s", perSecond(after), perSecond(before)),
		fmt.Sprintf("at most %d are allowed, all rules together, and a burst counts once a minute", p.Allow.LogRate))
}

// perSecond rounds up to tenths.
func perSecond(rate int) string {
	return strconv.FormatFloat(math.Ceil(float64(rate)*10/hour)/10, 'f', -1, 64)
}

// UnlimitedLog refuses a rule that can log every packet.
func (p *Publisher) UnlimitedLog() *Refusal {
	if p.Allow.LogRate == UnlimitedLog {
		return nil
	}
	return p.refuse(Limit(nft.ClassLog.String()), "allow.log", "may not log every packet", fmt.Sprintf(
		"%d packets a second are allowed: write a limit such as limit rate 10/minute before log in the same rule", p.Allow.LogRate))
}

// Devices refuses base chains or flowtables at devices.
func (p *Publisher) Devices(names []string) *Refusal {
	for _, name := range names {
		if !slices.ContainsFunc(p.Allow.Devices, func(glob string) bool { return matchName(glob, name) }) {
			return p.refuse(LimitDevices, "allow.devices", "may not use device "+clip(name), "allowed devices are "+join(p.Allow.Devices))
		}
	}
	return nil
}
