package render

import (
	"fmt"
	"maps"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Maximum ports of a Service. The kernel looks up the maps of session affinity linearly.
const (
	maxPorts         = 10_000
	maxAffinityPorts = 1_000
)

func check(s *model.Service) error {
	most, with := maxPorts, ""
	if s != nil && s.Affinity > 0 {
		most, with = maxAffinityPorts, " with sessionAffinity ClientIP"
	}
	if s == nil || len(s.Ports) <= most {
		return nil
	}
	return fmt.Errorf("it has %d ports: a Service%s can have at most %d: split it into several Services", len(s.Ports), with, most)
}

// LeftOut implements publish.Renderer.
func (r *Renderer) LeftOut() map[model.Key]error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.leftOut)
}

const (
	// affinityPortSize is the extra size of a port with session affinity: its maps take the kernel as long as
	// this many elements.
	affinityPortSize = 64
	// slowerMaps maps in a table add an element's cost to each further map, because the kernel compares
	// all names.
	slowerMaps = 16
)

// Size implements publish.Renderer. It counts listeners and their endpoints.
func (r *Renderer) Size(s *model.Service) int {
	n := 1
	for i := range s.Ports {
		n += r.portSize(s, &s.Ports[i], false)
	}
	return n
}

// portSize includes the cost caused by existing ports if present is true.
func (r *Renderer) portSize(s *model.Service, p *model.Port, present bool) (n int) {
	r.cfg.eachFamily(s, p, func(p *model.Port, f model.Family) {
		if s.Affinity > 0 && p.Backends[f].Cluster.Len() > 0 {
			n += affinityPortSize + index(present)*r.tables[f].affinityMaps/slowerMaps
		}
		n += (1 + len(p.External[f])) * (1 + p.Backends[f].Cluster.Len())
	})
	return n
}
