package flows

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/weft-proxy/weft/conntrack"
)

// maxNoted bounds the destinations that are noted. Further ones are not stored.
const maxNoted = 1 << 14

// Notes stores destinations that have lost their last backend and whose flows
// are not removed yet, for the next start. The storage need not survive a reboot:
// flows do not outlive the kernel.
type Notes interface {
	// Load returns what the last Save stored. Notes that cannot be read are
	// removed, and the error says so.
	Load() ([]conntrack.Change, error)
	// Save replaces what is stored.
	Save([]conntrack.Change) error
}

// note is the list of destinations in the order of their commits, together with
// its copy in the Notes.
type note struct {
	// store is nil if nothing is to be stored.
	store Notes
	noted []conntrack.Change
}

// add notes destinations.
func (n *note) add(deserted []conntrack.Change) error {
	if n.store == nil {
		return nil
	}
	room := maxNoted - len(n.noted)
	if len(deserted) <= room {
		n.noted = append(n.noted, deserted...)
		return n.store.Save(n.noted)
	}
	n.noted = append(n.noted, deserted[:room]...)
	return errors.Join(fmt.Errorf("note flows: %d destinations have lost all backends at once, and %d are noted: if weft is killed now, flows to the others stay until they time out",
		len(deserted), room), n.store.Save(n.noted))
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
	return n.store.Save(n.noted)
}

// load reads what an earlier run has noted.
func (n *note) load() error {
	if n.store == nil {
		return nil
	}
	noted, err := n.store.Load()
	n.noted = append(n.noted, noted...)
	return err
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
