package model

// tally counts the endpoints of a port in one family that decide which are used:
// those that are ready, and of them those with a trait.
type tally struct {
	ready, local            int
	hintedNode, forThisNode int
	hintedZone, forThisZone int
}

// add counts n endpoints with these traits; -1 takes one away.
func (c *tally) add(t traits, n int) {
	if t.state() != ready {
		return
	}
	c.ready += n
	if t.local() {
		c.local += n
	}
	for _, x := range [...]struct {
		trait traits
		to    *int
	}{{hintedNode, &c.hintedNode}, {forThisNode, &c.forThisNode}, {hintedZone, &c.hintedZone}, {forThisZone, &c.forThisZone}} {
		if t&x.trait != 0 {
			*x.to += n
		}
	}
}

// topology returns which ready endpoints the policy Cluster uses: near ones count
// only where every endpoint has hints and one of them is for here; node hints before
// zone hints (rules 71, 72).
func (c *tally) topology() topology {
	switch {
	case c.ready == 0:
		return anywhere
	case c.hintedNode == c.ready && c.forThisNode > 0:
		return sameNode
	case c.hintedZone == c.ready && c.forThisZone > 0:
		return sameZone
	default:
		return anywhere
	}
}

// choice says which endpoints of a port are in which list.
type choice struct {
	// cluster and local are the worst states that are used.
	cluster, local state
	near           topology
	// hasLocal and hasDraining are false where there is no such list.
	hasLocal, hasDraining bool
}

// choose decides from the endpoints of a Service's port.
func (c *tally) choose(s *service, p *servicePort) choice {
	return choice{
		cluster: worst(c.ready), local: worst(c.local), near: c.topology(),
		hasLocal: s.internalLocal || s.externalLocal, hasDraining: p.protocol == UDP,
	}
}

// worst returns the worst state that is used: ready where there is such an endpoint,
// or else leaving (rules 63, 64).
func worst(readyOnes int) state {
	if readyOnes > 0 {
		return ready
	}
	return leaving
}

func (c choice) inCluster(t traits) bool { return t.state() <= c.cluster && c.near.fits(t) }

func (c choice) inLocal(t traits) bool { return c.hasLocal && t.local() && t.state() <= c.local }

func (c choice) inDraining(t traits) bool {
	return c.hasDraining && t.state() <= serving && !c.inCluster(t)
}

// list is one of the lists of Backends, with what is in it by a choice.
type list struct {
	*Endpoints
	has func(traits) bool
}

func (c choice) lists(b *Backends) [3]list {
	return [3]list{{&b.Cluster, c.inCluster}, {&b.Local, c.inLocal}, {&b.Draining, c.inDraining}}
}
