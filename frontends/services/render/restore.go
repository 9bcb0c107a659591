package render

import (
	"net/netip"
	"strconv"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

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
		if v, ok := parsePick(c.GetName()); ok {
			t.idlePicks[v] = struct{}{}
		} else if isRemember(c.GetName()) {
			t.idleChains[c.GetName()] = struct{}{}
		}
	}
	t.hints = make(map[frontKey]hint)
	for _, s := range of.GetMaps() {
		if isAffinity(s.GetName()) {
			t.idleMaps[s.GetName()] = struct{}{}
			continue
		}
		in, ok := setOf(s.GetName())
		if !ok || !declarations[in].slot {
			continue
		}
		for _, e := range s.GetElements() {
			t.restoreSlot(in, e)
		}
	}
}

// restoreSlot notes who sat in a slot. Of a front with affinity both maps may say
// it, and what one of them says of slots that the other has not is kept.
func (t *table) restoreSlot(in set, e *weftv1.Element) {
	k, slot, ok := t.parseSlot(e.GetKey(), in)
	if !ok {
		return
	}
	var ep netip.AddrPort
	if declarations[in].sticky {
		ep, ok = parseRemember(e.GetValue(), t.family)
	} else {
		ep, ok = parseEndpoint(e.GetValue())
	}
	if !ok {
		return
	}
	h := t.hints[k]
	all := &h.slots
	if slot >= localSlots {
		all, slot = &h.local, slot-localSlots
	}
	if slot >= len(*all) {
		*all = append(*all, make([]netip.AddrPort, slot+1-len(*all))...)
	}
	(*all)[slot] = ep
	t.hints[k] = h
}

// setOf returns the set of a name.
func setOf(name string) (set, bool) {
	for s := range numSets {
		if declarations[s].name == name {
			return s, true
		}
	}
	return 0, false
}

// parseSlot is the inverse of how fill writes keys.
func (t *table) parseSlot(text string, in set) (k frontKey, slot int, ok bool) {
	parts := strings.Split(text, " . ")
	if len(parts) < 3 {
		return k, 0, false
	}
	slot, err := strconv.Atoi(parts[len(parts)-1])
	if err != nil || slot < 0 || slot >= 2*model.MaxEndpoints && slot < localSlots || slot >= localSlots+model.MaxEndpoints {
		return k, 0, false
	}
	k, ok = t.parseFront(parts[:len(parts)-1], !declarations[in].nodePort)
	return k, slot, ok
}

// parseFront is the inverse of frontKey.append.
func (t *table) parseFront(parts []string, withAddr bool) (k frontKey, ok bool) {
	k.family = t.family
	if withAddr && len(parts) > 0 {
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
