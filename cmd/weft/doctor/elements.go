package doctor

import (
	"strings"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// elements are those of the Service frontend's tables, none for a family without a table.
type elements [model.NumFamilies]tableElements

// tableElements are the elements of one table. Keys are as nft writes them: those of addresses,
// such as "10.96.0.10 . tcp . 80", and those of NodePorts, such as "tcp . 30080".
type tableElements struct {
	// listeners are the keys that lead to endpoints or to a reject.
	listeners map[string]bool
	// slots are the endpoints of a listener, such as "10.244.1.2 . 8080".
	slots map[string][]string
}

// The maps of the Service frontend (frontends/services/render).
var (
	listenerMaps = []string{"services", "shortcuts", "no-endpoint-services", "nodeports", "nodeport-shortcuts", "no-endpoint-nodeports"}
	slotMaps     = []string{"endpoints", "nodeport-endpoints"}
)

const serviceTable = "weft"

// readElements reads the tables of the Service frontend from the kernel.
func readElements() (*elements, error) {
	r, err := kernel.OpenReader(kernel.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	programs, err := r.Programs()
	if err != nil {
		return nil, err
	}
	out := new(elements)
	for i := range programs {
		p := &programs[i]
		family := model.IPv4
		switch {
		case p.ID == (nft.TableID{Family: nft.FamilyIP6, Name: serviceTable}):
			family = model.IPv6
		case p.ID != (nft.TableID{Family: nft.FamilyIP, Name: serviceTable}):
			continue
		}
		if !p.Ours {
			continue
		}
		if out[family], err = readTable(r, p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readTable reads the maps of a table.
func readTable(r *kernel.Reader, p *kernel.Program) (tableElements, error) {
	t := tableElements{listeners: make(map[string]bool), slots: make(map[string][]string)}
	read := func(name string, add func(s *set.Set, e set.Element)) error {
		for _, s := range p.Sets {
			if s.Decl.Name != name {
				continue
			}
			if s.Err != nil {
				return s.Err
			}
			all, err := r.Elements(p.ID, s.Decl)
			if err != nil {
				return err
			}
			for _, e := range all {
				add(s.Decl, e)
			}
		}
		return nil
	}
	for _, name := range listenerMaps {
		if err := read(name, func(s *set.Set, e set.Element) { t.listeners[s.FormatKey(e)] = true }); err != nil {
			return t, err
		}
	}
	for _, name := range slotMaps {
		if err := read(name, func(s *set.Set, e set.Element) {
			key := s.FormatKey(e)
			// The last part is the number of the slot.
			if i := strings.LastIndex(key, " . "); i > 0 {
				t.slots[key[:i]] = append(t.slots[key[:i]], s.FormatData(e))
			}
		}); err != nil {
			return t, err
		}
	}
	return t, nil
}
