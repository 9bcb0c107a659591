package render

import (
	"hash/maphash"
	"iter"
	"net/netip"
	"strings"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Owner returns the Service that an object of a violation belongs to, such as
// "table ip weft map endpoints element 10.96.0.1 . tcp . 80 . 3" or "table ip weft
// chain remember-01234567-default/web/tcp/http__10.244.1.1/8080 rule 1".
func (r *Renderer) Owner(object string) (model.Key, bool) {
	head, key, element := strings.Cut(object, " element ")
	words := strings.Fields(head)
	if len(words) < 5 || words[0] != "table" {
		return model.Key{}, false
	}
	for _, t := range r.tables {
		if words[1] != t.words.table {
			continue
		}
		r.work++
		if !element {
			return r.namesake(words[4])
		}
		if k, ok := t.frontOf(words[4], key); ok {
			return r.owners.of(k)
		}
	}
	return model.Key{}, false
}

// addressKey is the key of the owner of an address.
func addressKey(a netip.Addr) frontKey { return frontKey{addr: a, family: model.FamilyOf(a)} }

// keys yields what a Service is the owner of: its fronts and addresses.
func (r *rendered) keys() iter.Seq[frontKey] {
	return func(yield func(frontKey) bool) {
		if r == nil {
			return
		}
		for i := range r.fronts {
			if !yield(r.fronts[i].key) {
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

// owners are the Services of fronts and addresses: the last one rendered, where two
// have the same, as they can for a moment while an update is tried in parts. There are
// very many keys, and it is rare that anybody asks: hashes of them do.
type owners struct {
	seed maphash.Seed
	all  map[uint64]*rendered
}

func newOwners() owners {
	return owners{seed: maphash.MakeSeed(), all: make(map[uint64]*rendered)}
}

// of returns the Service that owns a front or an address.
func (o *owners) of(k frontKey) (model.Key, bool) {
	s := o.all[maphash.Comparable(o.seed, k)]
	if s == nil || s.find(k, 0) == nil && addressKey(s.service.ClusterIPs[k.family]) != k {
		return model.Key{}, false
	}
	return s.service.Name, true
}

// change makes a Service the owner of what it has in place of what it had.
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

// namesake returns the Service that a chain or map is one of the own ones of, by its
// name: namespace and name of the Service are in it.
func (r *Renderer) namesake(object string) (model.Key, bool) {
	if !isRemember(object) && !isAffinity(object) {
		return model.Key{}, false
	}
	namespace, rest, _ := strings.Cut(object, "/")
	// Before the namespace, which can have dashes, is the hash of an affinityName.
	for l := range numLists {
		for _, prefix := range []string{rememberPrefix, affinityPrefix} {
			if after, ok := strings.CutPrefix(namespace, listPrefix[l]+prefix); ok {
				_, namespace, _ = strings.Cut(after, "-")
			}
		}
	}
	name, _, _ := strings.Cut(rest, "/")
	key := model.Key{Namespace: namespace, Name: name}
	s := r.services[key]
	if s == nil {
		return model.Key{}, false
	}
	r.work += uint64(len(s.affinities))
	return key, s.names(object)
}

// names reports whether a chain or map is one of the Service's own. Names that had to
// be cut are long enough for that.
func (r *rendered) names(object string) bool {
	for _, a := range r.affinities {
		for l := range numLists {
			if object == a.mapName(l) || strings.HasPrefix(object, a.chainPrefix(l)) {
				return true
			}
		}
	}
	return false
}

// frontOf returns the key of an element's owner: the front that it belongs to, or for
// one of cluster-ips the address.
func (t *table) frontOf(name, key string) (k frontKey, ok bool) {
	s, ok := setOf(name)
	if !ok {
		return k, false
	}
	parts := strings.Split(key, separator)
	switch d := &declarations[s]; {
	case d.slot:
		if _, ok = parseNumber(parts[len(parts)-1]); ok {
			k, ok = t.parseFront(parts[:len(parts)-1], !d.nodePort)
		}
	case d.nodePort:
		k, ok = t.parseFront(parts, false)
	case s == clusterIPs:
		a, err := netip.ParseAddr(key)
		return addressKey(a), err == nil
	case s == allowedSources:
		k, ok = t.parseFront(parts[:len(parts)-1], true)
	case s == firewalled || d.isMap:
		k, ok = t.parseFront(parts, true)
	default:
		return k, false
	}
	return k, ok
}
