package publish

import "github.com/prometheus/client_golang/prometheus"

// OutcomeGauges returns gauges that count the items by their State, in the label "state".
func (p *Publisher[K, V]) OutcomeGauges(name, help string) (out []prometheus.Collector) {
	for state := Wanted; state <= LeftOut; state++ {
		opts := prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"state": state.String()}}
		out = append(out, prometheus.NewGaugeFunc(opts, func() float64 { return float64(p.count(state)) }))
	}
	return out
}

// count returns the number of items in a state.
func (p *Publisher[K, V]) count(state State) (n int) {
	p.outcomes.mu.Lock()
	defer p.outcomes.mu.Unlock()
	for _, o := range p.outcomes.items {
		if o.State == state {
			n++
		}
	}
	return n
}
