package traffic

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

type flowCount struct{ connections, original, reply uint64 }

func (c *flowCount) add(f *client.Flow) {
	c.connections++
	c.original += f.OriginalBytes
	c.reply += f.ReplyBytes
}

type flowCounts struct {
	ports, endpoints map[labels]flowCount
	// the kernel counts bytes
	accounted bool
}

func listFlows(ctx context.Context, c *client.Client, cfg *Config) (*flowCounts, error) {
	out := &flowCounts{ports: make(map[labels]flowCount), endpoints: make(map[labels]flowCount)}
	err := c.ListAllFlows(ctx, func(flows []client.Flow) error {
		for i := range flows {
			out.add(&flows[i], cfg.Ports, cfg.Counters >= render.CountEndpoints)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count connections of Services: %w", err)
	}
	return out, nil
}

func (c *flowCounts) add(f *client.Flow, ports Ports, endpoints bool) {
	closed := f.TCPState == weftv1.TCPState_TCP_STATE_TIME_WAIT || f.TCPState == weftv1.TCPState_TCP_STATE_CLOSE
	if closed || f.Destination == f.ReplySource || !f.ReplySource.IsValid() {
		return // closed, or not translated
	}
	p, ok := portAt(f, ports)
	if !ok {
		return
	}
	c.accounted = c.accounted || f.Accounted
	addTo(c.ports, labelsOf(p, ""), f)
	if endpoints {
		addTo(c.endpoints, labelsOf(p, f.ReplySource.String()), f)
	}
}

func portAt(f *client.Flow, ports Ports) (render.Port, bool) {
	protocol := model.Protocol(f.Protocol)
	to := netip.AddrPortFrom(f.Destination.Addr().Unmap(), f.Destination.Port())
	if p, ok := ports.PortAt(to, protocol); ok {
		return p, true
	}
	return ports.PortAtNodePort(model.FamilyOf(to.Addr()), to.Port(), protocol)
}

func addTo(all map[labels]flowCount, of labels, f *client.Flow) {
	n := all[of]
	n.add(f)
	all[of] = n
}

// The series with the most connections stay.
func bounded(in map[labels]flowCount, limit int) map[labels]flowCount {
	if len(in) <= limit {
		return in
	}
	keys := make([]labels, 0, len(in))
	for k := range in {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b labels) int {
		return cmp.Or(cmp.Compare(in[b].connections, in[a].connections), strings.Compare(a.namespace, b.namespace), strings.Compare(a.service, b.service),
			strings.Compare(a.name, b.name), strings.Compare(a.protocol, b.protocol), strings.Compare(a.endpoint, b.endpoint))
	})
	out := make(map[labels]flowCount, limit+1)
	for _, k := range keys[:limit] {
		out[k] = in[k]
	}
	var rest flowCount
	for _, k := range keys[limit:] {
		n := in[k]
		rest = flowCount{rest.connections + n.connections, rest.original + n.original, rest.reply + n.reply}
	}
	out[labels{service: others}] = rest
	return out
}
