package get

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// portText returns "80/tcp", or "http:80/tcp" for a port with a name.
func portText(p *localstate.Port) string {
	text := fmt.Sprintf("%d/%s", p.Port, strings.ToLower(p.Protocol))
	if p.Name != "" {
		text = p.Name + ":" + text
	}
	return text
}

// external returns the port's addresses outside of the cluster's ranges.
func external(p *localstate.Port) []netip.Addr {
	return slices.SortedFunc(slices.Values(slices.Concat(p.ExternalIPs, p.LoadBalancerIPs)), netip.Addr.Compare)
}

// ElementKeys returns the keys of a port in weft's maps.
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
