package explain

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	howClusterIP = "ClusterIP"
	howNodePort  = "NodePort"
	howExternal  = "external address"
	howLoopback  = "NodePort on a loopback address"
)

// serviceOf returns nil without a Service, weft, or the Service frontend.
func (a *asker) serviceOf(ctx context.Context, f flow, ways []Way) (*Service, error) {
	if !hasPorts(f.protocol) {
		return nil, nil //nolint:nilnil // Services have ports
	}
	protocol, port := model.Protocol(f.protocol), f.destination.Port()
	key, name, ok, err := get.FindService(ctx, &a.conn, f.destination.Addr(), protocol, port)
	how := howClusterIP
	if err == nil && !ok {
		if _, local, routeErr := a.host.towards(f.destination.Addr()); routeErr == nil && local {
			how = howNodePort
			if f.destination.Addr().IsLoopback() {
				how = howLoopback
			}
			key, name, ok, err = get.FindService(ctx, &a.conn, netip.Addr{}, protocol, port)
		}
	}
	switch {
	case errors.Is(err, client.ErrUnavailable), errors.As(err, new(*get.NoFrontendError)), err == nil && !ok:
		return nil, nil //nolint:nilnil // see above
	case err != nil:
		return nil, err
	}
	s, err := a.readService(ctx, key)
	if err != nil {
		return nil, err
	}
	candidates, err := get.ReadCandidates(ctx, &a.conn, key)
	if err != nil {
		return nil, err
	}
	family := model.FamilyOf(f.destination.Addr())
	if how == howClusterIP && s.ClusterIPs[family] != f.destination.Addr() {
		how = howExternal
	}
	out := &Service{Name: key.String(), Port: name, How: how}
	candidates = slices.DeleteFunc(candidates, func(c model.Candidate) bool {
		return c.Port != name || c.Protocol != protocol || model.FamilyOf(c.Addr.Addr()) != family
	})
	// Pods and the node reach external addresses and NodePorts as if the policy were Cluster.
	out.Local = how == howClusterIP && s.InternalLocal || how != howClusterIP && s.ExternalLocal && !leavesNode(ways, candidates)
	out.Endpoints = cli.Map(candidates, func(c model.Candidate) Endpoint { return endpointOf(c, out.Local) })
	return out, nil
}

func (a *asker) readService(ctx context.Context, key model.Key) (*model.Service, error) {
	state, err := get.ReadServices(ctx, &a.conn, key)
	if err != nil {
		return nil, err
	}
	if len(state.Services) != 1 {
		return nil, fmt.Errorf("%d rows of Service %s, want 1", len(state.Services), key)
	}
	return state.Services[0].Model()
}

func leavesNode(ways []Way, candidates []model.Candidate) bool {
	return slices.ContainsFunc(candidates, func(c model.Candidate) bool {
		return !c.Local && slices.ContainsFunc(ways, func(w Way) bool { return w.To == c.Addr })
	})
}

func endpointOf(c model.Candidate, local bool) Endpoint {
	return Endpoint{Address: c.Addr, OnNode: c.Local, Excluded: c.Why(local)}
}
