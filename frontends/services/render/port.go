package render

import (
	"net/netip"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Port is a port of a Service.
type Port struct {
	Service model.Key
	// may be empty for a single port
	Name     string
	Number   uint16
	Affinity bool
	Protocol model.Protocol
}

// PortOf returns the port of an element in a set or map of listeners or slots.
func (r *Renderer) PortOf(family, set, key string) (Port, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tables.named(family, Table)
	if t == nil {
		return Port{}, false
	}
	k, ok := t.listenerOf(set, key)
	if !ok {
		return Port{}, false
	}
	return r.owners.portOf(k)
}

// PortAt returns the Service port that accepts flows to a destination.
func (r *Renderer) PortAt(to netip.AddrPort, protocol model.Protocol) (Port, bool) {
	return r.portAt(listenerKey{addr: to.Addr(), port: to.Port(), protocol: protocol, family: model.FamilyOf(to.Addr())})
}

// PortAtNodePort is PortAt for a NodePort.
func (r *Renderer) PortAtNodePort(f model.Family, number uint16, protocol model.Protocol) (Port, bool) {
	return r.portAt(listenerKey{port: number, protocol: protocol, family: f})
}

func (r *Renderer) portAt(k listenerKey) (Port, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owners.portOf(k)
}

func (o *owners) portOf(k listenerKey) (Port, bool) {
	s := o.hashed(k)
	if s == nil {
		return Port{}, false
	}
	l := s.find(k, 0)
	if l == nil {
		return Port{}, false
	}
	out := Port{Service: s.service.Name, Name: l.port, Protocol: k.protocol, Affinity: l.sticky != nil}
	for i := range s.service.Ports {
		if p := &s.service.Ports[i]; p.Name == l.port && p.Protocol == k.protocol {
			out.Number = p.Number
		}
	}
	return out, true
}
