package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

var listPrefix = [numLists]string{byCluster: "", byLocal: "local-"}

const (
	affinityPrefix  = "affinity-"
	endpointsPrefix = "endpoints-"
	rememberPrefix  = "remember-"
	// earlierPrefix, then rememberPrefix, began the chain of each endpoint in earlier versions.
	earlierPrefix = "local-" + rememberPrefix
	// maxName is NFT_NAME_MAXLEN. maxPrefix bounds the text before a port's name.
	maxName      = 255
	maxPrefix    = 64
	affinitySize = 65536
)

// All listeners of a port share an affinity, so a client gets the same endpoint from each.
type affinity struct {
	family    model.Family
	protocol  model.Protocol
	name      string
	endpoints [numLists]model.Endpoints
	shape     shape
}

// shape determines the chains of an affinity.
type shape struct {
	timeout time.Duration
	lists   [numLists]bool
	// picks are the numbers of endpoints for unknown clients, by NodePort and way; 0 for no chain.
	picks [2][numWays]int32
}

// affinityName names a port as kube-proxy does. The hash is the same on every node.
func affinityName(s model.Key, p *model.Port) string {
	name := fmt.Sprintf("%s/%s/%s/%s", s.Namespace, s.Name, p.Protocol, p.Name)
	sum := sha256.Sum256([]byte(name))
	name = hex.EncodeToString(sum[:4]) + "-" + name
	return name[:min(len(name), maxName-maxPrefix)]
}

func (a *affinity) mapName(l list) string { return listPrefix[l] + affinityPrefix + a.name }
func (a *affinity) setName(l list) string { return listPrefix[l] + endpointsPrefix + a.name }

func portObject(object string) (name string, ok bool) {
	for _, prefix := range []string{affinityPrefix, endpointsPrefix} {
		for _, l := range listPrefix {
			if name, ok := strings.CutPrefix(object, l+prefix); ok {
				return name, true
			}
		}
	}
	return portChain(object)
}

func portChain(object string) (name string, ok bool) {
	for _, prefix := range []string{rememberPrefix, earlierPrefix} {
		if name, ok := strings.CutPrefix(object, prefix); ok {
			return name, true
		}
	}
	for _, of := range recallNames {
		for _, prefix := range of {
			if name, ok := strings.CutPrefix(object, prefix); ok {
				return name, true
			}
		}
	}
	return "", false
}

// Rules use maps per port, because binding a map of all Services makes the kernel walk every element.
func (a *affinity) chains(t *table, cfg *Config) (out []*weftv1.Chain) {
	var rules []string
	for l, used := range a.shape.lists {
		if used {
			rules = append(rules, t.names.spell(fmt.Sprintf("ip daddr . th dport @%s update @%s { ip saddr timeout %ds : ip daddr . th dport }",
				a.setName(list(l)), a.mapName(list(l)), int64(a.shape.timeout/time.Second))))
		}
	}
	if rules != nil {
		out = append(out, chain(rememberPrefix+a.name, rules...))
	}
	for nodePort, of := range a.shape.picks {
		for w, n := range of {
			if n > 0 {
				v := verdict{to: recall, nodePort: uint8(nodePort), way: way(w)}
				out = append(out, chain(recallNames[nodePort][w]+a.name, append(t.before(cfg, v), a.recall(t.names, v.list()), "goto "+a.picks(v).chain())...))
			}
		}
	}
	return out
}

func (a *affinity) recall(w family, l list) string {
	return w.spell(fmt.Sprintf("meta l4proto %s dnat ip to ip saddr map @", a.protocol)) + a.mapName(l)
}

func (a *affinity) picks(v verdict) verdict {
	out := verdict{to: pick, sticky: 1, nodePort: v.nodePort, way: direct, n: a.shape.picks[v.nodePort][v.way]}
	if v.way == kept {
		out.way = kept
	}
	return out
}

func (a *affinity) declare(p *patch, w family, l list) {
	p.maps = append(p.maps, &weftv1.Set{
		Name: a.mapName(l), Typeof: w.spell("ip saddr : ip daddr . th dport"), Flags: []string{"dynamic", "timeout"}, Size: affinitySize,
		Role: weftv1.MapRole_MAP_ROLE_AFFINITY,
	})
	s := &weftv1.Set{Name: a.setName(l), Typeof: w.spell("ip daddr . th dport")}
	var members packed
	for e := range a.endpoints[l].All() {
		members.addEndpoint(e.Addr)
	}
	s.Packed = members.list
	p.sets = append(p.sets, s)
}

func (r *rendered) affinity(of *affinity) *affinity {
	for _, a := range r.affinities {
		if a.family == of.family && a.name == of.name {
			return a
		}
	}
	return &affinity{family: of.family, protocol: of.protocol, name: of.name}
}

func (r *replacement) keepAffinities() {
	for _, a := range r.old.affinities {
		if is := r.now.affinity(a); !is.used() {
			r.keepAffinity(a, is)
		}
	}
	for _, a := range r.now.affinities {
		if a.used() {
			r.keepAffinity(r.old.affinity(a), a)
		}
	}
}

func (a *affinity) used() bool { return a.shape.lists != [numLists]bool{} }

func (r *replacement) keepAffinity(was, is *affinity) {
	t, p := r.tables[is.family], &r.patches[is.family]
	for l := range numLists {
		had, has := was.shape.lists[l], is.shape.lists[l]
		t.affinityMaps += index(has) - index(had)
		switch {
		case had && has:
			r.work += p.members(is.setName(l), was.endpoints[l], is.endpoints[l])
		case p.discard:
		case had:
			p.deleteSets = append(p.deleteSets, is.mapName(l), is.setName(l))
		case has:
			r.work += uint64(is.endpoints[l].Len())
			is.declare(p, t.names, l)
		}
	}
	if was.shape == is.shape {
		return
	}
	before, after := was.chains(t, &r.cfg), is.chains(t, &r.cfg)
	r.work += uint64(len(before) + len(after))
	for _, c := range before {
		if named(after, c.GetName()) == nil {
			t.empty(p, c.GetName())
		}
	}
	for _, c := range after {
		delete(t.idleChains, c.GetName())
		if !proto.Equal(named(before, c.GetName()), c) {
			p.chain(c)
		}
	}
}

func named(chains []*weftv1.Chain, name string) *weftv1.Chain {
	i := slices.IndexFunc(chains, func(c *weftv1.Chain) bool { return c.GetName() == name })
	if i < 0 {
		return nil
	}
	return chains[i]
}

// members returns the number of differences.
func (p *patch) members(name string, was, is model.Endpoints) (n uint64) {
	var remove, add packed
	is.Diff(was, func(gone model.Endpoint) {
		if n++; !is.Has(gone.Addr) {
			remove.addEndpoint(gone.Addr)
		}
	}, func(added model.Endpoint) {
		if n++; !was.Has(added.Addr) {
			add.addEndpoint(added.Addr)
		}
	})
	if len(remove.list)+len(add.list) > 0 && !p.discard {
		p.elements = append(p.elements, &weftv1.ElementPatch{Set: name, RemovePacked: remove.list, AddPacked: add.list})
	}
	return n
}
