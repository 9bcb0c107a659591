package flows

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/weft-proxy/weft/conntrack"
)

// maxNoted bounds the destinations that are noted. Further ones are not stored.
const maxNoted = 1 << 14

// note is the list of destinations in the order of their commits.
type note struct {
	// save is Config.Save.
	save  func([]conntrack.Change) error
	noted []conntrack.Change
}

// add notes destinations.
func (n *note) add(deserted []conntrack.Change) error {
	if n.save == nil {
		return nil
	}
	room := maxNoted - len(n.noted)
	if len(deserted) <= room {
		n.noted = append(n.noted, deserted...)
		return n.save(n.noted)
	}
	n.noted = append(n.noted, deserted[:room]...)
	return errors.Join(fmt.Errorf("note flows: %d destinations have lost all backends at once, and %d are noted: if weft is killed now, flows to the others stay until they time out",
		len(deserted), room), n.save(n.noted))
}

// strike forgets the first count destinations.
func (n *note) strike(count int) error {
	if count == 0 {
		return nil
	}
	n.noted = n.noted[count:]
	if len(n.noted) == 0 {
		n.noted = nil
	}
	return n.save(n.noted)
}

// without returns the noted destinations that are not in live.
func (n *note) without(live []conntrack.Destination) []conntrack.Change {
	if len(n.noted) == 0 {
		return nil
	}
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
