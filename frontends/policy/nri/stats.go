package nri

import "sync/atomic"

// Stats are the numbers of a Plugin.
type Stats struct {
	// Connected is true after the runtime has reported all its pods.
	Connected bool
	// Sandboxes counts pods with an address.
	Sandboxes int
	// Requests counts reports of single pods.
	Requests uint64
	// Late counts pods that started before a commit had their policies.
	Late uint64
}

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
