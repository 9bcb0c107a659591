package get

import (
	"net/netip"
	"strings"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// stateView is the local state in JSON and YAML. The names are those of the Service
// API.
type stateView struct {
	Revision uint64        `json:"revision"`
	Services []serviceView `json:"services"`
}

type serviceView struct {
	Namespace             string     `json:"namespace"`
	Name                  string     `json:"name"`
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
}

type endpointView struct {
	Address string   `json:"address"`
	Use     []string `json:"use"`
	Local   bool     `json:"local"`
}

func viewState(s *localState) stateView {
	out := stateView{Revision: s.Revision, Services: make([]serviceView, len(s.Services))}
	for i, svc := range s.Services {
		out.Services[i] = viewService(svc)
	}
	return out
}

func viewService(s *model.Service) serviceView {
	out := serviceView{
		Namespace: s.Name.Namespace, Name: s.Name.Name, ClusterIPs: addressTexts(s.ClusterIPs),
		InternalTrafficPolicy: policyWord(s.InternalLocal), ExternalTrafficPolicy: policyWord(s.ExternalLocal),
		AffinitySeconds: int(s.Affinity.Seconds()), HealthCheckNodePort: s.HealthCheckNodePort,
		Ports: make([]portView, len(s.Ports)),
	}
	if s.HealthCheckNodePort != 0 {
		out.LocalReady = s.LocalReady[:]
	}
	for _, of := range s.SourceRanges {
		for _, p := range of {
			out.SourceRanges = append(out.SourceRanges, p.String())
		}
	}
	for i := range s.Ports {
		out.Ports[i] = viewPort(&s.Ports[i])
	}
	return out
}

func viewPort(p *model.Port) portView {
	out := portView{
		Name: p.Name, Protocol: strings.ToUpper(p.Protocol.String()), Port: p.Number, NodePort: p.NodePort,
		ClusterIPs: addressTexts(p.ClusterIPs), Endpoints: []endpointView{},
	}
	for f := range model.Families {
		for _, e := range p.External[f] {
			if e.LoadBalancer {
				out.Balancers = append(out.Balancers, e.Addr.String())
			} else {
				out.ExternalIPs = append(out.ExternalIPs, e.Addr.String())
			}
		}
		for _, e := range usesOf(&p.Backends[f]) {
			out.Endpoints = append(out.Endpoints, endpointView{Address: e.Addr.String(), Use: e.uses, Local: e.Local})
		}
	}
	return out
}

func policyWord(local bool) string {
	if local {
		return "Local"
	}
	return "Cluster"
}

func addressTexts(in [model.Families]netip.Addr) (out []string) {
	for _, a := range in {
		if a.IsValid() {
			out = append(out, a.String())
		}
	}
	return out
}
