package top

import (
	"strconv"

	"github.com/weft-proxy/weft/cmd/weft/get"
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
	// at has the places in ports, by the keys of the elements that count.
	at map[string]int
}

func newIndex(services []*model.Service) *index {
	x := &index{at: make(map[string]int)}
	for _, s := range services {
		for i := range s.Ports {
			x.add(s, &s.Ports[i])
		}
	}
	return x
}

// add adds a port with all its addresses.
func (x *index) add(s *model.Service, p *model.Port) {
	out := servicePort{service: s.Name.String(), port: strconv.Itoa(int(p.Number)) + "/" + p.Protocol.String()}
	for f := range model.NumFamilies {
		out.endpoints += p.Backends[f].Cluster.Len()
		for _, key := range get.ElementKeys(p, f) {
			x.at[key] = len(x.ports)
		}
	}
	x.ports = append(x.ports, out)
}
