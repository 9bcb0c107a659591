package render

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// Snapshot returns the whole fragment: what all updates so far lead to.
func (r *Renderer) Snapshot() *weftv1.Fragment {
	var patches [model.Families]patch
	for f := range patches {
		patches[f].slab.free = make([]weftv1.Element, r.weigh(model.Family(f)))
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.services), model.CompareKeys) {
		s := r.services[key]
		for i := range s.fronts {
			f := &s.fronts[i]
			p := &patches[f.key.family]
			p.slots(f, nil)
			in, value := f.entry()
			p.set(in, f.key.String(), value, comment(key, f.port))
		}
	}
	out := &weftv1.Fragment{Name: Fragment}
	for f, t := range r.tables {
		if t.on {
			out.Tables = append(out.Tables, t.message(&r.cfg, &patches[f]))
		}
	}
	return out
}

// weigh estimates the number of elements of one family.
func (r *Renderer) weigh(f model.Family) (n int) {
	for _, s := range r.services {
		for i := range s.fronts {
			if s.fronts[i].key.family == f {
				n += 1 + len(s.fronts[i].slots.all)
			}
		}
	}
	t := r.tables[f]
	return n + len(t.clusterIPs.uses) + len(t.hairpins.uses) + len(t.nodePortKeys)
}

// message returns the table with all that it holds.
func (t *table) message(cfg *Config, p *patch) *weftv1.Table {
	for _, k := range t.nodePortKeys {
		p.set(nodePortIPs, k, "", "")
	}
	for _, a := range t.clusterIPs.keys(netip.Addr.Compare) {
		p.set(clusterIPs, a.String(), "", "")
	}
	for _, h := range t.hairpins.keys(hairpinKey.compare) {
		p.set(hairpin, h.String(), "", "")
	}
	out := &weftv1.Table{Family: t.words.table, Name: Table, Chains: t.chains(cfg)}
	for _, n := range declared(&t.picks, t.idlePicks) {
		out.Chains = append(out.Chains, t.pick(n))
	}
	for _, n := range declared(&t.nodePortPicks, t.idleNodePortPicks) {
		out.Chains = append(out.Chains, t.nodePortPick(cfg, n))
	}
	for s := range numSets {
		d := t.declare(s)
		d.Elements = p.add[s]
		if declarations[s].isMap {
			out.Maps = append(out.Maps, d)
		} else {
			out.Sets = append(out.Sets, d)
		}
		if declarations[s].conntrack {
			out.ConntrackMaps = append(out.ConntrackMaps, d.GetName())
		}
	}
	return out
}

// declared returns the sizes for which there is a chain.
func declared(c *counted[int], idle map[int]struct{}) []int {
	all := slices.AppendSeq(c.keys(cmp.Compare[int]), maps.Keys(idle))
	slices.Sort(all)
	return all
}

// Restore takes over the slots and chains of a fragment that an earlier
// renderer made, so that the first update moves no endpoint that is still
// there. It ignores what it does not know, and is to be called before the first
// Update.
func (r *Renderer) Restore(f *weftv1.Fragment) {
	for _, of := range f.GetTables() {
		for _, t := range r.tables {
			if of.GetName() == Table && of.GetFamily() == t.words.table {
				t.restore(of)
			}
		}
	}
}

func (t *table) restore(of *weftv1.Table) {
	for _, c := range of.GetChains() {
		name := c.GetName()
		idle := t.idlePicks
		digits, ok := strings.CutPrefix(name, nodePortPickPrefix)
		if ok {
			idle = t.idleNodePortPicks
		} else if digits, ok = strings.CutPrefix(name, pickPrefix); !ok {
			continue
		}
		if n, err := strconv.Atoi(digits); err == nil && n > 0 && n <= model.MaxEndpoints {
			idle[n] = struct{}{}
		}
	}
	t.hints = make(map[frontKey][]netip.AddrPort)
	for _, s := range of.GetMaps() {
		for _, in := range []set{endpoints, nodePortEndpoints} {
			if s.GetName() != declarations[in].name {
				continue
			}
			for _, e := range s.GetElements() {
				k, slot, ok := t.parseSlot(e.GetKey(), in)
				ep, valid := parseEndpoint(e.GetValue())
				if !ok || !valid {
					continue
				}
				all := t.hints[k]
				if slot >= len(all) {
					all = append(all, make([]netip.AddrPort, slot+1-len(all))...)
				}
				all[slot] = ep
				t.hints[k] = all
			}
		}
	}
}

// parseSlot is the inverse of how slots writes keys.
func (t *table) parseSlot(text string, in set) (k frontKey, slot int, ok bool) {
	parts := strings.Split(text, " . ")
	if len(parts) < 3 {
		return k, 0, false
	}
	slot, err := strconv.Atoi(parts[len(parts)-1])
	if err != nil || slot < 0 || slot >= 2*model.MaxEndpoints {
		return k, 0, false
	}
	k, ok = t.parseFront(parts[:len(parts)-1], in == endpoints)
	return k, slot, ok
}

// parseFront is the inverse of frontKey.append.
func (t *table) parseFront(parts []string, withAddr bool) (k frontKey, ok bool) {
	k.family = t.family
	if withAddr {
		a, err := netip.ParseAddr(parts[0])
		if err != nil {
			return k, false
		}
		k.addr, parts = a, parts[1:]
	}
	if len(parts) != 2 {
		return k, false
	}
	for _, p := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
		if parts[0] == p.String() {
			k.protocol = p
		}
	}
	n, err := strconv.ParseUint(parts[1], 10, 16)
	k.port = uint16(n)
	return k, err == nil && k.protocol != 0
}

func parseEndpoint(text string) (netip.AddrPort, bool) {
	addr, port, ok := strings.Cut(text, " . ")
	a, err := netip.ParseAddr(addr)
	n, err2 := strconv.ParseUint(port, 10, 16)
	return netip.AddrPortFrom(a, uint16(n)), ok && err == nil && err2 == nil
}

// Owner returns the Service that an object of a violation belongs to, such as
// "table ip weft map endpoints element 10.96.0.1 . tcp . 80 . 3".
func (r *Renderer) Owner(object string) (model.Key, bool) {
	head, key, ok := strings.Cut(object, " element ")
	words := strings.Fields(head)
	if !ok || len(words) < 2 {
		return model.Key{}, false
	}
	for f, t := range r.tables {
		if !slices.Contains(words, t.words.table) {
			continue
		}
		k, ok := t.frontOf(words[len(words)-1], key)
		if !ok {
			continue
		}
		for _, name := range slices.SortedFunc(maps.Keys(r.services), model.CompareKeys) {
			s := r.services[name]
			if k.port == 0 && s.service.ClusterIPs[f] == k.addr || s.find(k) != nil {
				return name, true
			}
		}
	}
	return model.Key{}, false
}

// frontOf returns the front that an element belongs to; one of cluster-ips has
// port 0.
func (t *table) frontOf(set, key string) (k frontKey, ok bool) {
	parts := strings.Split(key, " . ")
	switch set {
	case declarations[endpoints].name:
		k, _, ok = t.parseSlot(key, endpoints)
	case declarations[nodePortEndpoints].name:
		k, _, ok = t.parseSlot(key, nodePortEndpoints)
	case declarations[services].name, declarations[noEndpoints].name:
		k, ok = t.parseFront(parts, true)
	case declarations[nodePorts].name, declarations[noEndpointNodePorts].name:
		k, ok = t.parseFront(parts, false)
	case declarations[clusterIPs].name:
		a, err := netip.ParseAddr(key)
		return frontKey{family: t.family, addr: a}, err == nil
	}
	return k, ok
}
