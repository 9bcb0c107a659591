package top

import (
	"context"
	"errors"
	"fmt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// count adds what the rules have counted to the ports. It reports whether the rules count.
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
