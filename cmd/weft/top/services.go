package top

import (
	"net/netip"
	"strconv"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// servicePort is a port of a Service, with its connections.
type servicePort struct {
	// service and port are names, such as "default/web" and "80/tcp".
	service, port string
	endpoints     int
	// opened is how many connections the rules have counted.
	opened uint64
}

// index finds ports of Services by where connections are sent to.
type index struct {
	ports []servicePort
	// at has the places in ports. The address is zero for a NodePort.
	at map[destination]int
}

type destination struct {
	addr     netip.Addr
	port     uint16
	protocol uint8
}

func newIndex(services []*model.Service) *index {
	x := &index{at: make(map[destination]int)}
	for _, s := range services {
		for i := range s.Ports {
			x.add(s, &s.Ports[i])
		}
	}
	return x
}

// add adds a port with all its addresses.
func (x *index) add(s *model.Service, p *model.Port) {
	n, protocol := len(x.ports), uint8(p.Protocol)
	out := servicePort{service: s.Name.String(), port: strconv.Itoa(int(p.Number)) + "/" + p.Protocol.String()}
	for f := range model.NumFamilies {
		out.endpoints += p.Backends[f].Cluster.Len()
		if a := p.ClusterIPs[f]; a.IsValid() {
			x.at[destination{a, p.Number, protocol}] = n
		}
		for _, e := range p.External[f] {
			x.at[destination{e.Addr, p.Number, protocol}] = n
		}
	}
	if p.NodePort != 0 {
		x.at[destination{port: p.NodePort, protocol: protocol}] = n
	}
	x.ports = append(x.ports, out)
}

// empty returns the ports without connections.
func (x *index) empty() []*servicePort {
	out := make([]*servicePort, len(x.ports))
	for i := range x.ports {
		p := x.ports[i]
		out[i] = &p
	}
	return out
}
