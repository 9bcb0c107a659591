package aggregator

import (
	"context"
	"slices"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/findings"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/lint"
)

// newInspector returns the Inspector of an Aggregator.
func (a *Aggregator) newInspector() *findings.Inspector {
	return findings.New(findings.Config{
		Foreign: a.cfg.ReadAll,
		Merged: func(ctx context.Context) (all []*desired.Merged, err error) {
			return all, a.ask(ctx, func(w *writer) { all = w.merged(desired.DetailElements) })
		},
		Needs:   a.cfg.Needs,
		Changed: a.findingChanged,
		Counted: a.metrics.found,
		Logger:  a.log,
	})
}

// merged returns all tables.
func (w *writer) merged(detail desired.Detail) []*desired.Merged {
	all := desired.Reader{All: true}
	var out []*desired.Merged
	for _, t := range views.Tables(w.state, all) {
		if m, ok := views.Merged(w.state, t.Table, detail, all, nil); ok && m != nil {
			out = append(out, m)
		}
	}
	return out
}

// findingChanged tells of a finding that has appeared or is gone.
func (a *Aggregator) findingChanged(f *lint.Finding, gone bool) {
	text := "found"
	if gone {
		text = "no longer found"
	}
	a.log.Info(text, "finding", string(f.ID), "text", f.Text, "remedy", f.Remedy, "rules", f.Rules(nil))
	// Both parties may read it, and neither the rules of the other.
	a.hub.publish(&weftv1.WatchResponse{Event: &weftv1.WatchResponse_Finding{Finding: &weftv1.FindingChange{Finding: findings.Message(f, ""), Gone: gone}}})
}

// structural reports whether a plan changes more than elements.
func structural(p *desired.Plan) bool {
	return slices.ContainsFunc(p.Ops, func(op kernel.Op) bool {
		switch op.(type) {
		case kernel.AddElements, kernel.DeleteElements, kernel.FlushSet:
			return false
		default:
			return true
		}
	})
}

// plannedFindings returns the findings of the planned fragments, as their publisher sees them.
func (a *Aggregator) plannedFindings(ctx context.Context, publisher string, p *planning) ([]*weftv1.Finding, error) {
	// One at a time, so that callers cannot multiply what it costs.
	select {
	case a.inspecting <- struct{}{}:
		defer func() { <-a.inspecting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	found, err := a.inspector.Find(p.merged)
	if err != nil {
		return nil, err
	}
	planned := func(party lint.Party) bool {
		owner, name, _ := strings.Cut(party.Fragment, "/")
		_, ok := p.place[desired.Key{Publisher: owner, Name: name}]
		return ok
	}
	var out []*weftv1.Finding
	for i := range found {
		if planned(found[i].Subject.Party) || planned(found[i].Other.Party) {
			out = append(out, findings.Message(&found[i], publisher))
		}
	}
	return out, nil
}
