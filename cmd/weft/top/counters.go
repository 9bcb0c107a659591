package top

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// count adds what the rules have counted to the ports. It reports whether the rules count.
func (x *index) count(ctx context.Context, c *client.Client, ports []*servicePort) (counted bool, err error) {
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
				if n, ok := x.at[destinationOf(e.GetKey())]; ok {
					ports[n].opened += e.GetState().Packets()
				}
			}
		}
	}
	return counted, nil
}

// destinationOf parses a key such as "10.96.0.1 . tcp . 80", or "tcp . 30080" of a NodePort. It
// returns the zero value for others.
func destinationOf(key string) (d destination) {
	parts := strings.Split(key, " . ")
	if len(parts) == 3 {
		addr, err := netip.ParseAddr(parts[0])
		if err != nil {
			return destination{}
		}
		d.addr, parts = addr, parts[1:]
	}
	if len(parts) != 2 {
		return destination{}
	}
	for _, p := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
		if parts[0] == p.String() {
			d.protocol = uint8(p)
		}
	}
	n, err := strconv.ParseUint(parts[1], 10, 16)
	if err != nil {
		return destination{}
	}
	d.port = uint16(n)
	return d
}
