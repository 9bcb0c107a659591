package flows

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/weft-proxy/weft/conntrack"
)

// maxNoted bounds the destinations that are noted. Further ones are not stored.
const maxNoted = 1 << 14

// note is the list of destinations in the order of their commits.
type note struct {
	// save is Config.Save.
	save func([]conntrack.Change) error
	// saving is held while a list is saved, so that the last one that is saved is the last one. It is
	// locked before mu.
	saving sync.Mutex

	mu    sync.Mutex
	noted []conntrack.Change
}

// change changes the list and saves it.
func (n *note) change(f func([]conntrack.Change) []conntrack.Change) error {
	n.saving.Lock()
	defer n.saving.Unlock()
	n.mu.Lock()
	n.noted = f(n.noted)
	noted := n.noted
	n.mu.Unlock()
	if n.save == nil {
		return nil
	}
	return n.save(noted)
}

// add notes destinations.
func (n *note) add(deserted []conntrack.Change) error {
	var over error
	saved := n.change(func(noted []conntrack.Change) []conntrack.Change {
		room := maxNoted - len(noted)
		if len(deserted) > room {
			over = fmt.Errorf("note flows: %d destinations have lost all backends at once, and %d are noted: if weft is killed now, or their removal fails, flows to the others stay until they time out",
				len(deserted), room)
		}
		return append(noted, deserted[:min(room, len(deserted))]...)
	})
	return errors.Join(over, saved)
}

// strike forgets the first count destinations.
func (n *note) strike(count int) error {
	if count == 0 {
		return nil
	}
	return n.change(func(noted []conntrack.Change) []conntrack.Change {
		return append([]conntrack.Change(nil), noted[count:]...)
	})
}

// len returns the number of destinations.
func (n *note) len() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.noted)
}

// without returns the noted destinations that are not in live.
func (n *note) without(live []conntrack.Destination) []conntrack.Change {
	n.mu.Lock()
	defer n.mu.Unlock()
	leads := make(map[netip.AddrPort]bool, len(live))
	for _, l := range live {
		leads[netip.AddrPortFrom(l.Addr, l.Port)] = true
	}
	var out []conntrack.Change
	for _, s := range n.noted {
		if !leads[netip.AddrPortFrom(s.Addr, s.Port)] {
			out = append(out, s)
		}
	}
	return out
}
