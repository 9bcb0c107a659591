package nri

import "sync/atomic"

// Stats are the numbers of a Plugin.
type Stats struct {
	// Connected is true while the runtime is connected and has reported all its pods.
	Connected bool
	// Sandboxes is the number of reported pods with an address.
	Sandboxes int
	// Requests counts the reports of pods that start, stop, or are removed.
	Requests uint64
	// Late counts pods that started before a commit had their policies.
	Late uint64
}

// Stats returns the present numbers.
func (p *Plugin) Stats() Stats {
	c := &p.counters
	return Stats{Connected: c.connected.Load(), Sandboxes: int(c.sandboxes.Load()), Requests: c.requests.Load(), Late: c.late.Load()}
}

type counters struct {
	connected atomic.Bool
	sandboxes atomic.Int64
	requests  atomic.Uint64
	late      atomic.Uint64
}
