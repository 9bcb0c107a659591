package merge

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	nftobject "github.com/weft-proxy/weft/nft/object"
)

// Hook is a list of base chains, with a limit in the kernel. Chains of family inet are in the lists
// of ip and ip6, chains of a device in its list.
type Hook struct {
	family nft.Family
	number uint32
	device string
}

func HooksOf(family nft.Family, base *nftobject.Base) (hooks []Hook) {
	if base == nil {
		return nil
	}
	devices := base.Devices.List()
	if base.Device != "" {
		devices = append(devices, base.Device)
	}
	number := base.Hook
	switch {
	case family == nft.FamilyInet && len(devices) == 0:
		return []Hook{{nft.FamilyIP, number, ""}, {nft.FamilyIP6, number, ""}}
	case family == nft.FamilyInet:
		family, number = nft.FamilyNetdev, unix.NF_NETDEV_INGRESS
	case len(devices) == 0:
		devices = []string{""}
	}
	for _, device := range devices {
		hooks = append(hooks, Hook{family, number, device})
	}
	return hooks
}

// attach adds or removes a chain at the hooks of base, which may be nil. It may be repeated.
func (p *Paths) attach(o *Chain, base *nftobject.Base, in bool) {
	if base == nil {
		return
	}
	p.version++
	if in {
		p.attached = append(p.attached, o)
	}
	for _, h := range HooksOf(o.Table.ID.Family, base) {
		chains := p.Hooks[h]
		if in {
			if chains == nil {
				chains = map[*Chain]struct{}{}
				p.Hooks[h] = chains
			}
			chains[o] = struct{}{}
		} else if delete(chains, o); len(chains) == 0 {
			delete(p.Hooks, h)
		}
	}
}

func (p *Paths) effect(publisher string) desired.Effect {
	var e desired.Effect
	for _, o := range p.attached {
		if !o.Exists() || o.Decl().Base == nil || o.kernelBase() {
			continue
		}
		for _, h := range HooksOf(o.Table.ID.Family, o.Decl().Base) {
			if n := len(p.Hooks[h]); n > e.HookChains {
				e.Hook, e.HookChains = o.HookName(), n
			}
		}
	}
	for _, o := range p.grown {
		if !o.Exists() || o.Decl().Base == nil {
			continue
		}
		for _, h := range HooksOf(o.Table.ID.Family, o.Decl().Base) {
			sum, worst, every := p.pricesAt(h, publisher, o)
			if sum.Worst > e.Path.Time {
				e.Path = desired.Path{Time: sum.Worst, Chain: worst.At(), Hook: worst.HookName(), ChainTime: worst.Price.Worst, Chains: worst.Path}
			}
			if sum.Every > e.Every.Time {
				e.Every = desired.Path{Time: sum.Every, Chain: every.At(), Hook: every.HookName(), ChainTime: every.Price.Every, Chains: every.Path}
			}
		}
	}
	return e
}

// pricesAt returns the price of a publisher's base chains at a hook, with the chain also (or nil),
// and the most expensive chains.
func (p *Paths) pricesAt(h Hook, publisher string, also *Chain) (sum Price, worst, every *Chain) {
	dearer := func(o, most *Chain, of func(Price) int) bool {
		return most == nil || of(o.Price) > of(most.Price) || of(o.Price) == of(most.Price) && CompareParts(o, most) < 0
	}
	for o := range p.Hooks[h] {
		if o != also && !o.sharedBy(publisher) {
			continue
		}
		sum = sum.add(o.Price)
		if dearer(o, worst, func(p Price) int { return p.Worst }) {
			worst = o
		}
		if dearer(o, every, func(p Price) int { return p.Every }) {
			every = o
		}
	}
	return sum, worst, every
}

func (o *Chain) sharedBy(publisher string) bool {
	return slices.ContainsFunc(o.Shares, func(sh *ChainShare) bool {
		return !sh.Fragment.Unclaimed && sh.Fragment.Key.Publisher == publisher
	})
}

// kernelBase reports whether the kernel has the chain at all its hooks.
func (o *Chain) kernelBase() bool {
	d, ok := o.Kernel.(*nftobject.Chain)
	if !ok {
		return false
	}
	family := o.Table.ID.Family
	there := HooksOf(family, d.Base)
	return !slices.ContainsFunc(HooksOf(family, o.Decl().Base), func(h Hook) bool { return !slices.Contains(there, h) })
}

func (o *Chain) HookName() string { return o.Decl().Declaration(o.Table.ID.Family).Hook }

// PacketTime returns the nanoseconds at the most expensive hook of a publisher, in the worst case
// and for every packet. It looks at all base chains.
func (p *Paths) PacketTime(publisher string) (worst, every int) {
	for h := range p.Hooks {
		sum, _, _ := p.pricesAt(h, publisher, nil)
		worst, every = max(worst, sum.Worst), max(every, sum.Every)
	}
	return worst, every
}

// Version changes with the result of PacketTime.
func (p *Paths) Version() uint64 { return p.version }
