package services

import (
	"slices"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// outstanding is what the renderer has and no commit does yet. What answers for the
// state of the kernel, health checks above all, learns of it with the commit.
type outstanding struct {
	// services has nil for one that is gone.
	services map[model.Key]*model.Service
	node     *model.Node
	triggers []trigger
}

// keptRoom is how many Services room is kept for, once it was needed.
const keptRoom = 256

// trigger is when endpoints changed in the cluster.
type trigger struct {
	at       time.Time
	families [model.Families]bool
}

// add takes what an update carries; of a Service the last state counts.
func (o *outstanding) add(c *model.Changes) {
	for i := range c.Services {
		o.services[c.Services[i].Name] = c.Services[i].New
	}
	if c.Node != nil {
		o.node = c.Node
	}
}

// triggered takes when the endpoints changed that led to c. The model has no family
// for them: they count for those families whose endpoints c changes.
func (o *outstanding) triggered(c *model.Changes) {
	if len(c.Triggers) == 0 {
		return
	}
	var families [model.Families]bool
	for i := range c.Services {
		for f := range families {
			families[f] = families[f] || endpointsDiffer(c.Services[i].Old, c.Services[i].New, f)
		}
	}
	for _, at := range c.Triggers {
		o.triggers = append(o.triggers, trigger{at, families})
	}
}

// take returns what is outstanding, sorted by name, and forgets it but for the
// triggers.
func (o *outstanding) take() ([]model.Change, *model.Node) {
	changes := make([]model.Change, 0, len(o.services))
	for name, s := range o.services {
		changes = append(changes, model.Change{Name: name, New: s})
	}
	slices.SortFunc(changes, func(a, b model.Change) int { return model.CompareKeys(a.Name, b.Name) })
	node := o.node
	// A map that was once large costs as much to go through each time.
	if len(o.services) > keptRoom {
		o.services = make(map[model.Key]*model.Service)
	} else {
		clear(o.services)
	}
	o.node = nil
	return changes, node
}

// endpointsDiffer reports whether the endpoints of one family do.
func endpointsDiffer(old, now *model.Service, family int) bool {
	of := func(s *model.Service) (out []model.Backends) {
		if s != nil {
			for i := range s.Ports {
				out = append(out, s.Ports[i].Backends[family])
			}
		}
		return out
	}
	a, b := of(old), of(now)
	// A port that comes or goes without endpoints is no difference.
	empty := func(b model.Backends) bool { return b.Empty() }
	a, b = slices.DeleteFunc(a, empty), slices.DeleteFunc(b, empty)
	return !slices.EqualFunc(a, b, func(x, y model.Backends) bool { return x.Equal(&y) })
}

// The traffic policies of which kube-proxy counts ports without local endpoints, as
// an index.
const (
	internal = iota
	external
	policyCount
)

// missing counts the ports of Services whose policy is Local and that have endpoints
// elsewhere but none on this node, by policy and family.
type missing [policyCount][model.Families]int

// missingOf counts those of one Service. Like kube-proxy, a family counts if the
// Service has a ClusterIP in it.
func missingOf(s *model.Service) (out missing) {
	if s == nil || !s.InternalLocal && !s.ExternalLocal {
		return out
	}
	for i := range s.Ports {
		for f := range s.ClusterIPs {
			b := &s.Ports[i].Backends[f]
			if !s.ClusterIPs[f].IsValid() || b.Local.Len() > 0 || b.Cluster.Len() == 0 {
				continue
			}
			if s.InternalLocal {
				out[internal][f]++
			}
			if s.ExternalLocal {
				out[external][f]++
			}
		}
	}
	return out
}

// localBooks keep the sum of missing over all committed Services; those that add
// nothing to it take no room.
type localBooks struct {
	of  map[model.Key]missing
	sum missing
}

func (l *localBooks) apply(changes []model.Change) {
	for _, c := range changes {
		l.add(l.of[c.Name], -1)
		delete(l.of, c.Name)
		if m := missingOf(c.New); m != (missing{}) {
			l.of[c.Name] = m
			l.add(m, 1)
		}
	}
}

func (l *localBooks) add(m missing, by int) {
	for p := range m {
		for f := range m[p] {
			l.sum[p][f] += by * m[p][f]
		}
	}
}

// carried tells everyone who answers for the kernel that what was outstanding is
// committed, or made no difference to the rules.
func (p *publisher) carried() {
	if len(p.out.services) == 0 && p.out.node == nil {
		return
	}
	changes, node := p.out.take()
	p.servers.Apply(changes, node)
	p.locals.apply(changes)
	p.metrics.proxy.noLocal(&p.locals.sum)
}

// settled closes the books on everything that was carried, once no update waits to
// be tried again.
func (p *publisher) settled() {
	if p.whole {
		return
	}
	if len(p.asides) == 0 {
		p.queue.readmit()
	}
	since := p.queue.settle()
	if since.IsZero() {
		return
	}
	if !p.acked.IsZero() {
		p.metrics.latency.Observe(p.acked.Sub(since).Seconds())
		p.metrics.proxy.programmed(p.out.triggers, p.acked)
	}
	p.out.triggers = nil
	p.health.Updated()
}
