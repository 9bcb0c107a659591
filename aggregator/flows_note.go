package aggregator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/weft-proxy/weft/conntrack"
)

// noteName is the file of the note in the state directory.
const noteName = "flows.json"

// maxNoted bounds the destinations in a note. What exceeds it is not noted.
const maxNoted = 1 << 14

// noteSeal is that of the note's file.
var noteSeal = seal{kind: "weft-flows", version: 1}

// note keeps, in a file, the destinations that commits have left without a backend and
// whose flows are not removed yet. Others need none: the comparison of all flows with
// the present state that each start makes finds their flows, but it knows nothing of a
// destination that is gone.
//
// The file is not synced to the disk: flows do not outlive the kernel.
type note struct {
	dir   string
	noted []conntrack.Stale
	// written is true while there may be a file.
	written bool
}

func (n *note) path() string { return filepath.Join(n.dir, noteName) }

// add notes destinations.
func (n *note) add(deserted []conntrack.Stale) error {
	if n.dir == "" {
		return nil
	}
	room := maxNoted - len(n.noted)
	if len(deserted) > room {
		n.noted = append(n.noted, deserted[:room]...)
		return errors.Join(fmt.Errorf("note flows: %d destinations have lost all backends at once, and %d are noted: should weft be killed now, flows to the others stay until they time out",
			len(deserted), room), n.write())
	}
	n.noted = append(n.noted, deserted...)
	return n.write()
}

// strike forgets the first count destinations.
func (n *note) strike(count int) error {
	if count == 0 {
		return nil
	}
	n.noted = n.noted[count:]
	if len(n.noted) > 0 {
		return n.write()
	}
	n.noted = nil
	return n.remove()
}

// load reads what an earlier run has noted. A file that can't be read is removed.
func (n *note) load() error {
	if n.dir == "" {
		return nil
	}
	n.written = true
	b, err := noteSeal.read(n.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var noted []conntrack.Stale
	if err == nil {
		err = json.Unmarshal(b, &noted)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("read note %s: %w", n.path(), err), n.remove())
	}
	n.noted = append(n.noted, noted...)
	return nil
}

// write replaces the file.
func (n *note) write() error {
	b, err := json.Marshal(n.noted)
	if err != nil {
		return fmt.Errorf("encode note: %w", err)
	}
	n.written = true
	if err := writeUnsynced(n.path(), noteSeal.add(b)); err != nil {
		return fmt.Errorf("write note: %w", err)
	}
	return nil
}

func (n *note) remove() error {
	if !n.written {
		return nil
	}
	if err := os.Remove(n.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove note: %w", err)
	}
	n.written = false
	return nil
}

// without returns what is noted, less the destinations that lead somewhere.
func (n *note) without(live []conntrack.Live) []conntrack.Stale {
	if len(n.noted) == 0 {
		return nil
	}
	type dest struct {
		addr netip.Addr
		port uint16
	}
	leads := make(map[dest]bool, len(live))
	for _, l := range live {
		leads[dest{l.Addr, l.Port}] = true
	}
	var out []conntrack.Stale
	for _, s := range n.noted {
		if !leads[dest{s.Addr, s.Port}] {
			out = append(out, s)
		}
	}
	return out
}

// writeUnsynced replaces a file as a whole, for other processes.
func writeUnsynced(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+tmpMark+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
