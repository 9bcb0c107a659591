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
	t.restoreHooks(of)
	for _, c := range of.GetChains() {
		if v, ok := parsePick(c.GetName()); ok {
			t.idlePicks[v] = struct{}{}
		} else if isRemember(c.GetName()) {
			t.idleChains[c.GetName()] = struct{}{}
		}
	}
	t.hints = make(map[frontKey]*hint)
	for _, s := range of.GetMaps() {
		if isAffinity(s.GetName()) {
			t.idleMaps[s.GetName()] = struct{}{}
			continue
		}
		if in, ok := setOf(s.GetName()); ok && declarations[in].slot {
			t.restoreSlots(in, s.GetElements())
		}
	}
}

// hint are the slots that a front had, packed as in slots; what is all zeros is empty.
type hint struct{ slots, local []byte }

// restoreSlots notes who sat in slots. Of a front with affinity both maps may say
// it, and what one of them says of slots that the other has not is kept. The elements
// of a front mostly follow one another.
func (t *table) restoreSlots(in set, elements []*weftv1.Element) {
	var h *hint
	last := ""
	for _, e := range elements {
		at := strings.LastIndex(e.GetKey(), separator)
		if at < 0 {
			continue
		}
		if front := e.GetKey()[:at]; h == nil || front != last {
			k, ok := t.parseFront(strings.Split(front, separator), !declarations[in].nodePort)
			if !ok {
				h = nil
				continue
			}
			if h, last = t.hints[k], front; h == nil {
				h = new(hint)
				t.hints[k] = h
			}
		}
		slot, ok := parseNumber(e.GetKey()[at+len(separator):])
		if !ok {
			continue
		}
		var ep netip.AddrPort
		if declarations[in].sticky {
			ep, ok = parseRemember(e.GetValue(), t.family)
		} else {
			ep, ok = parseEndpoint(e.GetValue())
		}
		if !ok || model.FamilyOf(ep.Addr()) != t.family {
			continue
		}
		if slot >= localSlots {
			h.local = putPacked(h.local, slot-localSlots, ep)
		} else {
			h.slots = putPacked(h.slots, slot, ep)
		}
	}
}

// putPacked fills a slot, with empty ones before it if need be.
func putPacked(b []byte, slot int, ep netip.AddrPort) []byte {
	var scratch [width6]byte
	raw := pack(scratch[:0], ep)
	if end := (slot + 1) * len(raw); end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[slot*len(raw):], raw)
	return b
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

// separator stands between the parts of a key.
const separator = " . "

// parseNumber returns the number of a slot.
func parseNumber(text string) (slot int, ok bool) {
	slot, err := strconv.Atoi(text)
	ok = err == nil && slot >= 0 && slot < localSlots+model.MaxEndpoints && (slot < 2*model.MaxEndpoints || slot >= localSlots)
	return slot, ok
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
