package render

import (
	"net/netip"
	"strconv"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// Restore implements publish.Renderer. It adopts slots and chains, so the first update does not
// move endpoints. It ignores unknown objects. Call it before the first Update.
func (r *Renderer) Restore(f *weftv1.Fragment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range f.GetTables() {
		if t := r.tables.named(of.GetFamily(), of.GetName()); t != nil {
			t.restore(of)
		}
	}
}

func (t *table) restore(of *weftv1.Table) {
	t.restoreHooks(of)
	for _, c := range of.GetChains() {
		if v, ok := parsePick(c.GetName()); ok {
			t.picks.idle[v] = struct{}{}
		} else if _, ok := portChain(c.GetName()); ok || strings.HasPrefix(c.GetName(), sourcesPrefix) || strings.HasPrefix(c.GetName(), limitedPrefix) {
			t.idleChains[c.GetName()] = struct{}{}
		}
	}
	t.previous = make(map[listenerKey]*previousSlots)
	for _, s := range of.GetMaps() {
		if in, ok := setOf(s.GetName()); ok && declarations[in].slot {
			t.restoreSlots(in, s.GetElements())
		}
	}
}

// previousSlots are packed as in slots. Zeros mean an empty slot.
type previousSlots struct{ slots, local []byte }

// A listener's elements are usually adjacent.
func (t *table) restoreSlots(in set, elements []*weftv1.Element) {
	var h *previousSlots
	last := ""
	for _, e := range elements {
		at := strings.LastIndex(e.GetKey(), separator)
		if at < 0 {
			continue
		}
		if listener := e.GetKey()[:at]; h == nil || listener != last {
			k, ok := t.parseListener(strings.Split(listener, separator), !declarations[in].nodePort)
			if !ok {
				h = nil
				continue
			}
			if h, last = t.previous[k], listener; h == nil {
				h = new(previousSlots)
				t.previous[k] = h
			}
		}
		slot, ok := parseNumber(e.GetKey()[at+len(separator):])
		if !ok {
			continue
		}
		addr, port, _ := strings.Cut(e.GetValue(), separator)
		ep, ok := parseAddrPort(addr, port)
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

func putPacked(b []byte, slot int, ep netip.AddrPort) []byte {
	var scratch [maxWidth]byte
	raw := pack(scratch[:0], ep)
	if end := (slot + 1) * len(raw); end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[slot*len(raw):], raw)
	return b
}

func setOf(name string) (set, bool) {
	for s := range numSets {
		if declarations[s].name == name {
			return s, true
		}
	}
	return 0, false
}

const separator = " . "

func parseNumber(text string) (slot int, ok bool) {
	slot, err := strconv.Atoi(text)
	ok = err == nil && slot >= 0 && slot < localSlots+model.MaxEndpoints && (slot < 2*model.MaxEndpoints || slot >= localSlots)
	return slot, ok
}

func (t *table) parseListener(parts []string, withAddr bool) (k listenerKey, ok bool) {
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

func parseAddrPort(addr, port string) (netip.AddrPort, bool) {
	a, err := netip.ParseAddr(addr)
	n, err2 := strconv.ParseUint(port, 10, 16)
	return netip.AddrPortFrom(a, uint16(n)), err == nil && err2 == nil
}
