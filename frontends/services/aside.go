package services

import (
	"context"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// shared returns the family in which something that all Services share is refused,
// and nothing of the other one: a kernel without IPv6 NAT must not stop IPv4.
func (p *publisher) shared(rejected *client.RejectedError) (family model.Family, ok bool) {
	p.renderMu.Lock()
	defer p.renderMu.Unlock()
	nameless := false
	for i, v := range rejected.Violations {
		f, known := p.renderer.FamilyOf(v.GetObject())
		if !known || i > 0 && f != family {
			return 0, false
		}
		family = f
		if !nameless {
			// One is enough, and looking for an owner takes time.
			_, named := p.renderer.Owner(v.GetObject())
			nameless = !named
		}
	}
	return family, nameless && len(p.asides) == 0
}

// setAside goes on with the other family alone; what is committed of this one stays.
// The node counts as healthy as long as any change may wait, unless no Service has an
// address of the family.
func (p *publisher) setAside(ctx context.Context, f model.Family, why *client.RejectedError) error {
	kept := p.committed(ctx, f)
	p.renderMu.Lock()
	p.renderer.SetAside(f, kept)
	p.renderMu.Unlock()
	p.asideDelay = min(max(5*minRetry, 2*p.asideDelay), maxRetry)
	p.asides[f] = time.Now().Add(p.asideDelay)
	if p.serves(f) {
		p.queue.refuse()
	} else {
		p.queue.readmit()
	}
	p.log.Error("a whole family is refused: it stays as it is, and the other one goes on",
		"family", f.String(), "retry", p.asideDelay, "detail", why.Detail())
	p.whole = true
	return p.offer(ctx, model.Changes{})
}

// serves reports whether a Service has an address of a family. A kernel that cannot do
// what nobody asks for is no reason to have load balancers leave the node out.
func (p *publisher) serves(f model.Family) bool {
	for _, s := range p.Model().Services {
		if s.ClusterIPs[f].IsValid() {
			return true
		}
	}
	return false
}

// committed returns what the aggregator has of one family's table, nil if nothing.
func (p *publisher) committed(ctx context.Context, f model.Family) *weftv1.Table {
	got, err := p.client.Get(ctx, "", render.Fragment)
	if err != nil {
		return nil
	}
	for _, t := range got.GetFragment().GetTables() {
		if of, ok := p.renderer.FamilyOf("table " + t.GetFamily() + " " + t.GetName()); ok && of == f {
			return t
		}
	}
	return nil
}

// readmitFamily tries a family again whose time has come.
func (p *publisher) readmitFamily(ctx context.Context, now time.Time) error {
	for f, until := range p.asides {
		if until.After(now) {
			continue
		}
		delete(p.asides, f)
		p.renderMu.Lock()
		p.renderer.Readmit(f)
		p.renderMu.Unlock()
		p.whole = true
		if err := p.offer(ctx, model.Changes{}); err != nil {
			return err
		}
		if len(p.asides) == 0 && !p.whole {
			p.asideDelay = 0
			p.queue.readmit()
			p.log.Info("a family that was refused is published now", "family", f.String())
		}
	}
	return nil
}
