package get

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/publish/outcomepb"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// stateView is the local state in JSON and YAML, with the names of the Service API.
type stateView struct {
	Revision uint64        `json:"revision"`
	Services []serviceView `json:"services"`

	counters *modelpb.Counters
}

type serviceView struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	outcomeView
	ClusterIPs            []string   `json:"clusterIPs"`
	InternalTrafficPolicy string     `json:"internalTrafficPolicy"`
	ExternalTrafficPolicy string     `json:"externalTrafficPolicy"`
	AffinitySeconds       int        `json:"sessionAffinityTimeoutSeconds,omitempty"`
	SourceRanges          []string   `json:"loadBalancerSourceRanges,omitempty"`
	HealthCheckNodePort   uint16     `json:"healthCheckNodePort,omitempty"`
	LocalReady            []int      `json:"localReadyEndpoints,omitempty"`
	Ports                 []portView `json:"ports"`
}

type portView struct {
	Name        string         `json:"name,omitempty"`
	Protocol    string         `json:"protocol"`
	Port        uint16         `json:"port"`
	ClusterIPs  []string       `json:"clusterIPs,omitempty"`
	ExternalIPs []string       `json:"externalIPs,omitempty"`
	Balancers   []string       `json:"loadBalancerIPs,omitempty"`
	NodePort    uint16         `json:"nodePort,omitempty"`
	Endpoints   []endpointView `json:"endpoints"`

	// ExternalIPs and Balancers in the order of the model
	external []string
	protocol model.Protocol
}

// text returns "80/tcp", or "http:80/tcp" for a port with a name.
func (p *portView) text() string {
	text := fmt.Sprintf("%d/%s", p.Port, strings.ToLower(p.Protocol))
	if p.Name != "" {
		text = p.Name + ":" + text
	}
	return text
}

type endpointView struct {
	Address netip.AddrPort `json:"address"`
	Use     []string       `json:"use"`
	Local   bool           `json:"local"`
	// why it does not receive some or all new flows; only for "weft get endpoints"
	Excluded string `json:"excluded,omitempty"`
}

// viewState requires the Services of m in the same order.
func viewState(s model.Snapshot, m *modelpb.WatchResponse) *stateView {
	out := &stateView{Revision: s.Revision, Services: make([]serviceView, len(s.Services)), counters: m.GetCounters()}
	for i, svc := range s.Services {
		out.Services[i] = viewService(svc, m.GetState().GetServices()[i].GetOutcome())
	}
	return out
}

func viewService(s *model.Service, outcome *outcomepb.Outcome) serviceView {
	out := serviceView{
		Namespace: s.Name.Namespace, Name: s.Name.Name, outcomeView: viewOutcome(outcome), ClusterIPs: addressTexts(s.ClusterIPs),
		InternalTrafficPolicy: policyWord(s.InternalLocal), ExternalTrafficPolicy: policyWord(s.ExternalLocal),
		AffinitySeconds: int(s.Affinity.Seconds()), HealthCheckNodePort: s.HealthCheckNodePort,
		SourceRanges: cli.Map(slices.Concat(s.SourceRanges[:]...), netip.Prefix.String), Ports: make([]portView, len(s.Ports)),
	}
	if s.HealthCheckNodePort != 0 {
		out.LocalReady = s.LocalReady[:]
	}
	for i := range s.Ports {
		out.Ports[i] = viewPort(&s.Ports[i])
	}
	return out
}

func viewPort(p *model.Port) portView {
	out := portView{
		Name: p.Name, Protocol: strings.ToUpper(p.Protocol.String()), Port: p.Number, NodePort: p.NodePort,
		ClusterIPs: addressTexts(p.ClusterIPs), Endpoints: []endpointView{}, protocol: p.Protocol,
	}
	for f := range model.NumFamilies {
		for _, e := range p.External[f] {
			out.external = append(out.external, e.Addr.String())
			if e.LoadBalancer {
				out.Balancers = append(out.Balancers, e.Addr.String())
			} else {
				out.ExternalIPs = append(out.ExternalIPs, e.Addr.String())
			}
		}
		out.Endpoints = append(out.Endpoints, usesOf(&p.Backends[f])...)
	}
	return out
}

func usesOf(b *model.Backends) []endpointView {
	var out []endpointView
	for _, list := range []struct {
		use       string
		endpoints iter.Seq[model.Endpoint]
	}{{"cluster", b.Cluster.All()}, {"local", b.Local.All()}, {"draining", b.Draining.All()}} {
		for e := range list.endpoints {
			i, found := slices.BinarySearchFunc(out, e.Addr, func(v endpointView, addr netip.AddrPort) int { return v.Address.Compare(addr) })
			if !found {
				out = slices.Insert(out, i, endpointView{Address: e.Addr, Local: e.Local})
			}
			out[i].Use = append(out[i].Use, list.use)
		}
	}
	return out
}

// ElementKeys returns the keys of a port in weft's maps: by ClusterIP, external addresses and NodePort.
func ElementKeys(p *model.Port, family model.Family) (keys []string) {
	add := func(a netip.Addr) { keys = append(keys, fmt.Sprintf("%s . %s . %d", a, p.Protocol, p.Number)) }
	if ip := p.ClusterIPs[family]; ip.IsValid() {
		add(ip)
	}
	for _, e := range p.External[family] {
		add(e.Addr)
	}
	if p.NodePort != 0 {
		keys = append(keys, fmt.Sprintf("%s . %d", p.Protocol, p.NodePort))
	}
	return keys
}

const policyLocal = "Local"

func policyWord(local bool) string {
	if local {
		return policyLocal
	}
	return "Cluster"
}

func addressTexts(in [model.NumFamilies]netip.Addr) (out []string) {
	for _, a := range in {
		if a.IsValid() {
			out = append(out, a.String())
		}
	}
	return out
}
