package render

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Owner returns the Service that an object of a violation belongs to, such as
// "table ip weft map endpoints element 10.96.0.1 . tcp . 80 . 3" or "table ip weft
// chain remember-01234567-default/web/tcp/http__10.244.1.1/8080 rule 1".
func (r *Renderer) Owner(object string) (model.Key, bool) {
	head, key, element := strings.Cut(object, " element ")
	words := strings.Fields(head)
	for f, t := range r.tables {
		if len(words) < 5 || words[0] != "table" || words[1] != t.words.table {
			continue
		}
		owns := func(s *rendered) bool { return s.names(words[4]) }
		if element {
			k, ok := t.frontOf(words[4], key)
			if !ok {
				continue
			}
			owns = func(s *rendered) bool {
				return k.port == 0 && s.service.ClusterIPs[f] == k.addr || s.find(k) != nil
			}
		}
		for _, name := range slices.SortedFunc(maps.Keys(r.services), model.CompareKeys) {
			if owns(r.services[name]) {
				return name, true
			}
		}
	}
	return model.Key{}, false
}

// names reports whether a chain or map is one of the Service's own.
func (r *rendered) names(object string) bool {
	for _, a := range r.affinities {
		for l := range numLists {
			if object == a.mapName(l) {
				return true
			}
			for ep := range a.lists[l].endpoints.All() {
				if object == rememberName(a.chainPrefix(l), ep.Addr) {
					return true
				}
			}
		}
	}
	return false
}

// frontOf returns the front that an element belongs to; one of cluster-ips has
// port 0.
func (t *table) frontOf(name, key string) (k frontKey, ok bool) {
	s, ok := setOf(name)
	if !ok {
		return k, false
	}
	parts := strings.Split(key, " . ")
	switch d := &declarations[s]; {
	case d.slot:
		k, _, ok = t.parseSlot(key, s)
	case d.nodePort:
		k, ok = t.parseFront(parts, false)
	case s == clusterIPs:
		a, err := netip.ParseAddr(key)
		return frontKey{family: t.family, addr: a}, err == nil
	case s == allowedSources:
		k, ok = t.parseFront(parts[:len(parts)-1], true)
	case s == firewalled || d.isMap:
		k, ok = t.parseFront(parts, true)
	default:
		return k, false
	}
	return k, ok
}
