package flows

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/weft-proxy/weft/conntrack"
)

// maxNoted bounds the noted destinations. Others are not stored.
const maxNoted = 1 << 14

func (f *Flusher) note(change func([]conntrack.Stale) []conntrack.Stale) error {
	f.saving.Lock()
	defer f.saving.Unlock()
	f.mu.Lock()
	f.noted = change(f.noted)
	noted := f.noted
	f.mu.Unlock()
	if f.cfg.Save == nil {
		return nil
	}
	return f.cfg.Save(noted)
}

func (f *Flusher) add(deserted []conntrack.Stale) error {
	var over error
	saved := f.note(func(noted []conntrack.Stale) []conntrack.Stale {
		room := max(0, maxNoted-len(noted))
		if len(deserted) > room {
			over = fmt.Errorf("note flows: %d destinations have lost all backends at once, and %d are noted: if weft is killed now, or their removal fails, flows to the others stay until they time out",
				len(deserted), room)
		}
		return append(noted, deserted[:min(room, len(deserted))]...)
	})
	return errors.Join(over, saved)
}

// strike forgets the first count destinations.
func (f *Flusher) strike(count int) error {
	if count == 0 {
		return nil
	}
	return f.note(func(noted []conntrack.Stale) []conntrack.Stale {
		return append([]conntrack.Stale(nil), noted[count:]...)
	})
}

// recall adds the noted destinations not in live to the stale ones. The lock is held.
func (f *Flusher) recall(live []conntrack.Destination) {
	leads := make(map[netip.AddrPort]bool, len(live))
	for _, l := range live {
		leads[netip.AddrPortFrom(l.Addr, l.Port)] = true
	}
	for _, s := range f.noted {
		if !leads[netip.AddrPortFrom(s.Addr, s.Port)] {
			f.stale = append(f.stale, s)
		}
	}
}
