package model

// readyCounts counts the ready endpoints of a port in one family, and those of them with
// certain flags. They decide which endpoints are used.
type readyCounts struct {
	ready, local            int
	hintedNode, forThisNode int
	hintedZone, forThisZone int
}

// add counts n endpoints with these flags; n may be negative.
func (c *readyCounts) add(t flags, n int) {
	if t.state() != ready {
		return
	}
	c.ready += n
	if t.local() {
		c.local += n
	}
	for _, x := range [...]struct {
		trait flags
		to    *int
	}{{hintedNode, &c.hintedNode}, {forThisNode, &c.forThisNode}, {hintedZone, &c.hintedZone}, {forThisZone, &c.forThisZone}} {
		if t&x.trait != 0 {
			*x.to += n
		}
	}
}

// topology returns which ready endpoints the policy Cluster uses. Hints count only if
// every endpoint has them and one is for this node; hints for nodes precede those for
// zones (rules 71, 72).
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

// choice decides which endpoints of a port are in which list.
type choice struct {
	// cluster and local are the worst states that are used.
	cluster, local state
	near           topology
	// hasLocal and hasDraining are false if there is no such list.
	hasLocal, hasDraining bool
}

// choose returns the choice for a port of a Service.
func (c *readyCounts) choose(s *service, p *servicePort) choice {
	return choice{
		cluster: worst(c.ready), local: worst(c.local), near: c.topology(),
		hasLocal: s.internalLocal || s.externalLocal, hasDraining: p.protocol == UDP,
	}
}

// worst returns the worst state that is used: ready if there is such an endpoint, or else
// leaving (rules 63, 64).
func worst(readyOnes int) state {
	if readyOnes > 0 {
		return ready
	}
	return leaving
}

func (c choice) inCluster(t flags) bool { return t.state() <= c.cluster && c.near.fits(t) }

func (c choice) inLocal(t flags) bool { return c.hasLocal && t.local() && t.state() <= c.local }

func (c choice) inDraining(t flags) bool {
	return c.hasDraining && t.state() <= serving && !c.inCluster(t)
}

// list is one of the lists of Backends, and which endpoints are in it.
type list struct {
	*Endpoints
	has func(flags) bool
}

func (c choice) lists(b *Backends) [3]list {
	return [3]list{{&b.Cluster, c.inCluster}, {&b.Local, c.inLocal}, {&b.Draining, c.inDraining}}
}
