package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// listPrefix begins the names of the objects of a list.
var listPrefix = [numLists]string{byCluster: "", byLocal: "local-"}

const (
	affinityPrefix = "affinity-"
	rememberPrefix = "remember-"
	// endpointMark separates a port and an endpoint in names, as in those of kube-proxy.
	endpointMark = "__"
	// maxName is the maximum length of the name of a chain or a map (NFT_NAME_MAXLEN).
	maxName = 255
	// affinitySize is the number of clients that one port remembers.
	affinitySize = 65536
)

// affinity is the state of a port with session affinity in one family. Each list in use
// has a map from client to endpoint, which packets fill, and a chain for each endpoint in
// the list. All listeners of a port use its map, so they send a client to the same
// endpoint.
type affinity struct {
	family   model.Family
	protocol model.Protocol
	timeout  time.Duration
	// name has the namespace, the Service, the protocol and the port.
	name  string
	lists [numLists]affinityList
}

// affinityList has the endpoints of a list; it is empty if the list is not used.
type affinityList struct {
	used      bool
	endpoints model.Endpoints
}

// affinityName names a port, as kube-proxy does. The hash makes names unique that are cut
// to fit, and is the same on every node.
func affinityName(s model.Key, p *model.Port) string {
	name := fmt.Sprintf("%s/%s/%s/%s", s.Namespace, s.Name, p.Protocol, p.Name)
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4]) + "-" + name
}

// fit cuts a name that is too long, and replaces its end by a hash of the whole.
func fit(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	const bytes = 8
	return name[:maxName-1-2*bytes] + "-" + hex.EncodeToString(sum[:bytes])
}

// mapName returns the name of the map of a list.
func (a *affinity) mapName(l list) string { return fit(listPrefix[l] + affinityPrefix + a.name) }

// chainPrefix returns the prefix of the names of a list's chains.
func (a *affinity) chainPrefix(l list) string {
	return listPrefix[l] + rememberPrefix + a.name + endpointMark
}

// rememberName returns the name of the chain of an endpoint. Names cannot have colons.
func rememberName(prefix string, ep netip.AddrPort) string {
	addr := strings.ReplaceAll(ep.Addr().String(), ":", ".")
	return fit(prefix + addr + "/" + strconv.Itoa(int(ep.Port())))
}

// parseRemember returns the endpoint in the name of a chain.
func parseRemember(name string, f model.Family) (netip.AddrPort, bool) {
	at := strings.LastIndex(name, endpointMark)
	if at < 0 {
		return netip.AddrPort{}, false
	}
	addr, port, _ := strings.Cut(name[at+len(endpointMark):], "/")
	if f == model.IPv6 {
		addr = strings.ReplaceAll(addr, ".", ":")
	}
	return parseAddrPort(addr, port)
}

// isRemember and isAffinity report whether a name is that of a chain or of a map of this
// file.
func isRemember(name string) bool { return strings.HasPrefix(withoutList(name), rememberPrefix) }
func isAffinity(name string) bool { return strings.HasPrefix(withoutList(name), affinityPrefix) }

// withoutList returns a name without the prefix of its list.
func withoutList(name string) string { return strings.TrimPrefix(name, listPrefix[byLocal]) }

// other returns the other list if it has the endpoint too: a client keeps its endpoint
// under both policies.
func (a *affinity) other(l list, ep netip.AddrPort) (list, bool) {
	o := byCluster + byLocal - l
	return o, a.lists[o].used && a.lists[o].endpoints.Has(ep)
}

// chain remembers an endpoint for a client that has none, and sends the flow to the one
// that is remembered: an update keeps the value of an existing entry, and restarts its
// timeout. If the map is full, the last rule decides.
func (a *affinity) chain(w family, l list, ep netip.AddrPort) *weftv1.Chain {
	update := func(of list) string {
		return w.spell(fmt.Sprintf("update @%s { ip saddr timeout %ds : %s . %d }",
			a.mapName(of), int64(a.timeout/time.Second), ep.Addr(), ep.Port()))
	}
	rules := []string{update(l)}
	if o, both := a.other(l, ep); both {
		rules = append(rules, update(o))
	}
	dnat := w.spell(fmt.Sprintf("meta l4proto %s dnat ip to ", a.protocol))
	rules = append(rules, w.spell(dnat+"ip saddr map @")+a.mapName(l), dnat+ep.String())
	return chain(rememberName(a.chainPrefix(l), ep), rules...)
}

func declareAffinity(w family, name string) *weftv1.Set {
	return &weftv1.Set{
		Name: name, Typeof: w.spell("ip saddr : ip daddr . th dport"), Flags: []string{"dynamic", "timeout"}, Size: affinitySize,
		Role: weftv1.MapRole_MAP_ROLE_AFFINITY,
	}
}

// same reports whether the chain of an endpoint in both would be the same.
func (a *affinity) same(o *affinity, l list, ep netip.AddrPort) bool {
	_, both := a.other(l, ep)
	_, before := o.other(l, ep)
	return a.timeout == o.timeout && both == before
}

// affinity returns the affinity with a family and name, nil if there is none.
func (r *rendered) affinity(of *affinity) *affinity {
	for i := range r.affinities {
		if a := r.affinities[i]; a.family == of.family && a.name == of.name {
			return a
		}
	}
	return nil
}

// remember declares the maps and chains that are new or different. It empties the chains
// of endpoints that are no longer picked, so that nothing writes their entries any more.
// Cleanup removes those chains, and the maps without a use.
func (r *Renderer) remember(old, now *rendered, patches *[model.NumFamilies]patch) {
	for _, a := range old.affinities {
		if now.affinity(a) == nil {
			none := affinity{family: a.family, protocol: a.protocol, timeout: a.timeout, name: a.name}
			r.keepSticky(a, &none, patches)
		}
	}
	for _, a := range now.affinities {
		was := old.affinity(a)
		if was == nil {
			was = &affinity{timeout: a.timeout}
		}
		r.keepSticky(was, a, patches)
	}
}

// keepSticky renders the change of what a port remembers.
func (r *Renderer) keepSticky(was, is *affinity, patches *[model.NumFamilies]patch) {
	t, p := r.tables[is.family], &patches[is.family]
	for l := range numLists {
		name := is.mapName(l)
		had, has := was.lists[l].used, is.lists[l].used
		_, idle := t.idleMaps[name]
		switch {
		case had && !has:
			t.idleMaps[name] = struct{}{}
		case has && idle:
			delete(t.idleMaps, name)
		case has && !had && !p.discard:
			p.maps = append(p.maps, declareAffinity(t.names, name))
		}
		prefix := is.chainPrefix(l)
		for _, ep := range is.differing(was, l) {
			r.work++
			before, after := was.lists[l].endpoints.Has(ep), is.lists[l].endpoints.Has(ep)
			switch {
			case before && !after:
				name := rememberName(prefix, ep)
				t.idleChains[name] = struct{}{}
				p.chain(chain(name))
			case after && !(before && is.same(was, l, ep)):
				if len(t.idleChains) > 0 {
					delete(t.idleChains, rememberName(prefix, ep))
				}
				if !p.discard {
					p.chain(is.chain(t.names, l, ep))
				}
			}
		}
	}
}

// differing returns the endpoints whose chains for a list may differ, sorted. A chain
// depends on both lists.
func (a *affinity) differing(was *affinity, l list) (out []netip.AddrPort) {
	note := func(e model.Endpoint) { out = append(out, e.Addr) }
	if a.timeout != was.timeout {
		for e := range a.lists[l].endpoints.All() {
			note(e)
		}
	}
	for l := range numLists {
		a.lists[l].endpoints.Diff(was.lists[l].endpoints, note, note)
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}
