package render

import (
	"hash/maphash"
	"iter"
	"net/netip"
	"slices"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// Owner implements publish.Renderer. Shared chains have no owner.
func (r *Renderer) Owner(o *weftv1.ObjectName) (model.Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tables.named(o.GetFamily(), o.GetTable())
	if t == nil || o.GetName() == "" {
		return model.Key{}, false
	}
	r.work++
	if _, shared := setOf(o.GetName()); !shared {
		port, _ := portObject(o.GetName())
		return r.ownerByName(port)
	}
	k, ok := t.listenerOf(o.GetName(), o.GetKey())
	if !ok {
		return model.Key{}, false
	}
	return r.owners.of(k)
}

func addressKey(a netip.Addr) listenerKey { return listenerKey{addr: a, family: model.FamilyOf(a)} }

func (r *rendered) keys() iter.Seq[listenerKey] {
	return func(yield func(listenerKey) bool) {
		for i := range r.listeners {
			if !yield(r.listeners[i].key) {
				return
			}
		}
		for _, ip := range r.service.ClusterIPs {
			if ip.IsValid() && !yield(addressKey(ip)) {
				return
			}
		}
	}
}

// owners finds Services by the hash of a key. While an update is tried in parts, two Services may have a key:
// the last one rendered counts.
type owners struct {
	seed maphash.Seed
	all  map[uint64]*rendered
}

func newOwners() owners {
	return owners{seed: maphash.MakeSeed(), all: make(map[uint64]*rendered)}
}

func (o *owners) of(k listenerKey) (model.Key, bool) {
	s := o.hashed(k)
	if s == nil || s.find(k, 0) == nil && addressKey(s.service.ClusterIPs[k.family]) != k {
		return model.Key{}, false
	}
	return s.service.Name, true
}

func (o *owners) hashed(k listenerKey) *rendered { return o.all[maphash.Comparable(o.seed, k)] }

func (o *owners) change(old, now *rendered) {
	for k := range old.keys() {
		if h := maphash.Comparable(o.seed, k); o.all[h] == old {
			delete(o.all, h)
		}
	}
	for k := range now.keys() {
		o.all[maphash.Comparable(o.seed, k)] = now
	}
}

func (r *Renderer) ownerByName(port string) (model.Key, bool) {
	// A hash precedes the namespace, which may contain dashes.
	_, rest, _ := strings.Cut(port, "-")
	namespace, rest, _ := strings.Cut(rest, "/")
	name, _, _ := strings.Cut(rest, "/")
	key := model.Key{Namespace: namespace, Name: name}
	s := r.services[key]
	if s == nil {
		return model.Key{}, false
	}
	r.work += uint64(len(s.affinities))
	return key, slices.ContainsFunc(s.affinities, func(a *affinity) bool { return a.name == port })
}

// listenerOf takes the address for the owner key in cluster-ips.
func (t *table) listenerOf(name, key string) (k listenerKey, ok bool) {
	s, ok := setOf(name)
	if !ok {
		return k, false
	}
	parts := strings.Split(key, separator)
	switch d := &declarations[s]; {
	case d.slot:
		if _, ok = parseNumber(parts[len(parts)-1]); ok {
			k, ok = t.parseListener(parts[:len(parts)-1], !d.nodePort)
		}
	case d.nodePort:
		k, ok = t.parseListener(parts, false)
	case s == clusterIPs:
		a, err := netip.ParseAddr(key)
		return addressKey(a), err == nil
	case s == serviceConnections || d.isMap:
		k, ok = t.parseListener(parts, true)
	default:
		return k, false
	}
	return k, ok
}
