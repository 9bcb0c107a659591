package desired

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	nftobject "github.com/weft-proxy/weft/nft/object"
)

// hook is a list of base chains in the kernel, which has a limit for each of them. A chain
// of family inet is in the lists of ip and ip6, one of a device in that of the device.
type hook struct {
	family nft.Family
	number uint32
	device string
}

// hooksOf returns the hooks of a base chain. It returns none for a chain without base.
func hooksOf(family nft.Family, base *nftobject.Base) (hooks []hook) {
	if base == nil {
		return nil
	}
	devices := base.Devices.List()
	if base.Device != "" {
		devices = append(devices, base.Device)
	}
	switch {
	case len(devices) > 0 && family == nft.FamilyInet:
		for _, device := range devices {
			hooks = append(hooks, hook{nft.FamilyNetdev, unix.NF_NETDEV_INGRESS, device})
		}
	case len(devices) > 0:
		for _, device := range devices {
			hooks = append(hooks, hook{family, base.Hook, device})
		}
	case family == nft.FamilyInet:
		hooks = []hook{{nft.FamilyIP, base.Hook, ""}, {nft.FamilyIP6, base.Hook, ""}}
	default:
		hooks = []hook{{family, base.Hook, ""}}
	}
	return hooks
}

// attach adds a base chain to the lists of its hooks or removes it. It does nothing for a
// chain without base, or if the chain is there, or gone, already.
func (s *State) attach(o *chain, base *nftobject.Base, in bool) {
	if base == nil {
		return
	}
	s.paths++
	if in {
		s.attached = append(s.attached, o)
	}
	for _, h := range hooksOf(o.table.id.Family, base) {
		chains := s.hooks[h]
		if in {
			if chains == nil {
				chains = map[*chain]struct{}{}
				s.hooks[h] = chains
			}
			chains[o] = struct{}{}
		} else if delete(chains, o); len(chains) == 0 {
			delete(s.hooks, h)
		}
	}
}

// Effect is what an update does to packets and hooks.
type Effect struct {
	// Hook is the hook with the most base chains to which the update adds one or more, and
	// HookChains their number. HookChains is 0 if it adds none.
	Hook       string
	HookChains int
	// Path is the most expensive way of a packet that the update makes more expensive.
	// Path.Time is 0 if there is none.
	Path Path
	// Every is the base chain that takes most of the time of every packet at a hook where the
	// update makes that longer. Its Time is 0 if there is none.
	Every Path
}

// Path is the most expensive way of a packet through the base chains of one hook.
type Path struct {
	// Chain is the most expensive base chain.
	Chain Place
	// Hook is the name of its hook.
	Hook string
	// Chains returns the names of Chain and of the most expensive chain that each sends the
	// packet to. It must be called before the state changes, and looks at all elements of
	// verdict maps: it is for messages.
	Chains func() []string
	// Time is what the packet pays in nanoseconds in all base chains of the publisher at the
	// hook, ChainTime the part of it that Chain has.
	Time, ChainTime int
}

// effect returns the effect of the running change of a publisher.
func (s *State) effect(publisher string) Effect {
	var e Effect
	for _, o := range s.attached {
		if !o.exists() || o.decl().Base == nil || o.kernelBase() {
			continue
		}
		for _, h := range hooksOf(o.table.id.Family, o.decl().Base) {
			if n := len(s.hooks[h]); n > e.HookChains {
				e.Hook, e.HookChains = o.hookName(), n
			}
		}
	}
	for _, o := range s.grown {
		if !o.exists() || o.decl().Base == nil {
			continue
		}
		for _, h := range hooksOf(o.table.id.Family, o.decl().Base) {
			sum, worst, every := s.pricesAt(h, publisher, o)
			if sum.worst > e.Path.Time {
				e.Path = Path{Time: sum.worst, Chain: worst.at(), Hook: worst.hookName(), ChainTime: worst.price.worst, Chains: worst.path}
			}
			if sum.every > e.Every.Time {
				e.Every = Path{Time: sum.every, Chain: every.at(), Hook: every.hookName(), ChainTime: every.price.every, Chains: every.path}
			}
		}
	}
	return e
}

// pricesAt returns what a packet pays at a hook in the base chains of a publisher and in also, and
// the chain that takes most of it in the worst case, and of every packet.
func (s *State) pricesAt(h hook, publisher string, also *chain) (sum price, worst, every *chain) {
	dearer := func(o, most *chain, of func(price) int) bool {
		return most == nil || of(o.price) > of(most.price) || of(o.price) == of(most.price) && compareParts(o, most) < 0
	}
	for o := range s.hooks[h] {
		if o != also && !o.sharedBy(publisher) {
			continue
		}
		sum = sum.add(o.price)
		if dearer(o, worst, func(p price) int { return p.worst }) {
			worst = o
		}
		if dearer(o, every, func(p price) int { return p.every }) {
			every = o
		}
	}
	return sum, worst, every
}

// sharedBy reports whether a fragment of a publisher has a share of the chain.
func (o *chain) sharedBy(publisher string) bool {
	return slices.ContainsFunc(o.shares, func(sh *chainShare) bool {
		return !sh.fragment.unclaimed && sh.fragment.key.Publisher == publisher
	})
}

// kernelBase reports whether the kernel has the chain at its hook already.
func (o *chain) kernelBase() bool {
	d, ok := o.kernel.(*nftobject.Chain)
	return ok && d.Base != nil && d.Base.Hook == o.decl().Base.Hook
}

// hookName returns the name of the hook of a base chain.
func (o *chain) hookName() string { return o.decl().Declaration(o.table.id.Family).Hook }

// PacketTime returns what a packet pays in nanoseconds at one hook in the base chains of a
// publisher: in the worst case, and what no packet is spared. It looks at all base chains.
func (s *State) PacketTime(publisher string) (worst, every int) {
	for h := range s.hooks {
		sum, _, _ := s.pricesAt(h, publisher, nil)
		worst, every = max(worst, sum.worst), max(every, sum.every)
	}
	return worst, every
}

// PathsVersion returns a number that changes with the result of PacketTime.
func (s *State) PathsVersion() uint64 { return s.paths }
