package model

type readyCounts struct {
	ready, local            int
	hintedNode, forThisNode int
	hintedZone, forThisZone int
}

func (c *readyCounts) add(t flags) {
	if t.state() != ready {
		return
	}
	c.ready++
	if t.local() {
		c.local++
	}
	if t&(hintedNode|hintedZone) == 0 {
		return
	}
	for _, x := range [...]struct {
		trait flags
		to    *int
	}{{hintedNode, &c.hintedNode}, {forThisNode, &c.forThisNode}, {hintedZone, &c.hintedZone}, {forThisZone, &c.forThisZone}} {
		if t&x.trait != 0 {
			*x.to++
		}
	}
}

// topology applies hints only if every ready endpoint has hints and one is for this node or zone. Node hints
// precede zone hints (rules 71, 72).
func (c *readyCounts) topology() topology {
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

type choice struct {
	// worst usable states
	cluster, local state
	near           topology
	// false if the list does not exist
	hasLocal, hasDraining bool
}

func (c *readyCounts) choose(s *service, p *servicePort) choice {
	return choice{
		cluster: worst(c.ready), local: worst(c.local), near: c.topology(),
		hasLocal: s.internalLocal || s.externalLocal, hasDraining: p.protocol == UDP,
	}
}

// worst implements rules 63 and 64.
func worst(readyOnes int) state {
	if readyOnes > 0 {
		return ready
	}
	return leaving
}

func (c choice) inCluster(t flags) bool { return t.state() <= c.cluster && c.near.fits(t) }

func (c choice) inLocal(t flags) bool { return t.local() && t.state() <= c.local }

func (c choice) inDraining(t flags) bool {
	return t.state() <= serving && !c.inCluster(t)
}
