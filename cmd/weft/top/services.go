package top

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

type servicePort struct {
	// such as "default/web" and "80/tcp"
	service, port string
	endpoints     int
	// counted by the rules
	opened uint64
}

type index struct {
	ports []servicePort
	// at has indexes of ports by keys of counting elements.
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

// count adds to ports. counted is false for rules without counters.
func (x *index) count(ctx context.Context, c *client.Client, ports []servicePort) (counted bool, err error) {
	sets := render.CountServices.ConnectionSets()
	for _, family := range []string{"ip", "ip6"} {
		t, err := c.GetTable(ctx, &weftv1.GetTableRequest{Family: family, Name: render.Table, ObjectsOnly: true, Live: true, Sets: sets, Counted: true})
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("counters of Services: %w", err)
		}
		counted = counted || len(t.GetSets()) > 0
		for _, s := range t.GetSets() {
			for _, e := range s.GetSet().GetElements() {
				if n, ok := x.at[e.GetKey()]; ok {
					ports[n].opened += e.GetState().Packets()
				}
			}
		}
	}
	return counted, nil
}
