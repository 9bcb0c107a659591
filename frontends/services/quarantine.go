package services

import (
	"context"
	"errors"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// reasonRefused is the reason of the event about a Service that is left out.
const reasonRefused = "ServiceRefused"

// hold is a Service that the aggregator refused.
type hold struct {
	until time.Time
	delay time.Duration
}

// sift takes the held Services out of changes: one that is gone is forgotten,
// one that is different now is tried again by itself.
func (p *publisher) sift(changes []model.Change) (rest []model.Change, again []model.Key) {
	if len(p.holds) == 0 {
		return changes, nil
	}
	for _, c := range changes {
		switch {
		case p.holds[c.Name] == nil:
			rest = append(rest, c)
		case c.New == nil:
			p.release(c.Name)
		default:
			again = append(again, c.Name)
		}
	}
	return rest, again
}

// expired returns the held Services whose time has come.
func (p *publisher) expired(now time.Time) []model.Key {
	var out []model.Key
	for key, h := range p.holds {
		if !h.until.After(now) {
			out = append(out, key)
		}
	}
	return sortKeys(out)
}

// readmit tries one held Service again.
func (p *publisher) readmit(ctx context.Context, key model.Key) error {
	s := p.service(key)
	if s == nil {
		p.release(key)
		return nil
	}
	h := p.holds[key]
	if h == nil {
		return nil
	}
	// The hold stays until the Service is in, so that a refusal finds its delay
	// and sets a new time.
	h.until = time.Time{}
	if err := p.offer(ctx, model.Changes{Services: []model.Change{{Name: key, New: s}}}); err != nil {
		return err
	}
	if p.holds[key] == h && h.until.IsZero() {
		p.release(key)
		p.log.Info("a Service that was left out is published now", "service", key.String())
	}
	return nil
}

func (p *publisher) release(key model.Key) {
	delete(p.holds, key)
	p.quarantined()
}

// quarantined publishes the list of held Services.
func (p *publisher) quarantined() {
	keys := make([]model.Key, 0, len(p.holds))
	for k := range p.holds {
		keys = append(keys, k)
	}
	names := make([]string, len(keys))
	for i, k := range sortKeys(keys) {
		names[i] = k.String()
	}
	p.metrics.quarantined.Set(float64(len(names)))
	p.statusMu.Lock()
	p.status.Quarantined = names
	p.statusMu.Unlock()
}

// offer publishes changes, and finds out whose fault it is if they are refused.
// An error ends the frontend.
func (p *publisher) offer(ctx context.Context, c model.Changes) error {
	err := p.send(ctx, c)
	if err == nil {
		return nil
	}
	rejected := refusal(err)
	if rejected == nil {
		return p.failed(ctx, err)
	}
	if _, wide := p.shared(rejected); !wide {
		if named := p.owners(rejected); len(named) > 0 {
			return p.exclude(ctx, named, rejected)
		}
	}
	// Nobody is named. What was refused may be a passing condition of the
	// kernel, or lie in what all Services share: once more, as a whole.
	p.whole = true
	if err = p.send(ctx, model.Changes{}); err == nil {
		p.log.Warn("an update was refused, and not when it was tried again", "detail", rejected.Detail())
		return nil
	}
	if rejected = refusal(err); rejected == nil {
		return p.failed(ctx, err)
	}
	if f, ok := p.shared(rejected); ok {
		return p.setAside(ctx, f, rejected)
	}
	if err := p.divide(ctx, c.Services, err); err != nil {
		return err
	}
	// Halves of a batch in which one Service took over an address of another
	// can both have had it for a moment: a snapshot settles what is right.
	if !p.whole {
		p.whole, p.retry = true, time.Time{}
	}
	return nil
}

// exclude publishes without Services, and says why: a refusal is logged here, or
// where failed is called, once. Each round takes at least one out that was in, so
// this ends.
func (p *publisher) exclude(ctx context.Context, names []model.Key, why *client.RejectedError) error {
	gone := make([]model.Change, len(names))
	without := make([]string, len(names))
	var retry time.Duration
	for i, key := range names {
		h := p.holds[key]
		if h == nil {
			h = &hold{}
			p.holds[key] = h
		}
		h.delay = min(max(10*minRetry, 2*h.delay), maxRetry)
		h.until = time.Now().Add(h.delay)
		gone[i] = model.Change{Name: key}
		without[i], retry = key.String(), max(retry, h.delay)
		p.cfg.warnOf(key, reasonRefused, "its rules are refused, so it is not served on node "+p.cfg.NodeName+": "+why.Error())
	}
	p.log.Error("Services are refused: going on without them", "services", without, "retry", retry, "detail", why.Detail())
	p.quarantined()
	return p.offer(ctx, model.Changes{Services: gone})
}

// divide finds the Services that are refused among changes by halves, starting
// from how things were before. refused is what the whole led to.
func (p *publisher) divide(ctx context.Context, changes []model.Change, refused error) error {
	var suspects []model.Change
	for _, c := range changes {
		if c.New != nil {
			suspects = append(suspects, c)
		}
	}
	switch len(suspects) {
	case 0:
		return p.failed(ctx, refused)
	case 1:
		return p.exclude(ctx, []model.Key{suspects[0].Name}, refusal(refused))
	}
	back := make([]model.Change, len(suspects))
	for i, c := range suspects {
		back[i] = model.Change{Name: c.Name, New: c.Old}
	}
	if err := p.send(ctx, model.Changes{Services: back}); err != nil {
		// It was none of them: keep what should be, and try again later.
		p.load(model.Changes{Services: suspects})
		return p.failed(ctx, err)
	}
	half := len(suspects) / 2
	for _, part := range [][]model.Change{suspects[:half], suspects[half:]} {
		err := p.send(ctx, model.Changes{Services: part})
		if err == nil {
			continue
		}
		if refusal(err) == nil {
			return p.failed(ctx, err)
		}
		if err := p.divide(ctx, part, err); err != nil {
			return err
		}
	}
	return nil
}

// refusal returns the rejection that an error is, nil if it is none or one that
// is not about the content of single Services.
func refusal(err error) *client.RejectedError {
	var rejected *client.RejectedError
	if !errors.As(err, &rejected) || rejected.Has(weftv1.Reason_REASON_TAKEN_OVER) ||
		rejected.Has(weftv1.Reason_REASON_PERMISSION) || rejected.Has(weftv1.Reason_REASON_LIMIT) {
		return nil
	}
	return rejected
}

// owners returns the Services that violations name, sorted.
func (p *publisher) owners(rejected *client.RejectedError) []model.Key {
	p.renderMu.Lock()
	defer p.renderMu.Unlock()
	seen := make(map[model.Key]bool)
	var out []model.Key
	for _, v := range rejected.Violations {
		if key, ok := p.renderer.Owner(v.GetObject()); ok && !seen[key] {
			seen[key] = true
			out = append(out, key)
		}
	}
	return sortKeys(out)
}

func sortKeys(keys []model.Key) []model.Key {
	slices.SortFunc(keys, model.CompareKeys)
	return keys
}
