package doctor

import (
	"slices"
	"strings"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// elements are weft's of each family, empty without a table.
type elements [model.NumFamilies]tableElements

// tableElements have keys as nft writes them: addresses, such as "10.96.0.10 . tcp . 80", and
// NodePorts, such as "tcp . 30080".
type tableElements struct {
	// keys with endpoints or a reject
	listeners map[string]bool
	// endpoints by key, such as "10.244.1.2 . 8080"
	slots map[string][]string
}

// Names of maps of frontends/services/render.
var (
	listenerMaps = []string{"services", "shortcuts", "no-endpoint-services", "nodeports", "nodeport-shortcuts", "no-endpoint-nodeports"}
	slotMaps     = []string{"endpoints", "nodeport-endpoints"}
)

const serviceTable = "weft"

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
	for family, f := range [...]nft.Family{model.IPv4: nft.FamilyIP, model.IPv6: nft.FamilyIP6} {
		id := nft.TableID{Family: f, Name: serviceTable}
		i := slices.IndexFunc(programs, func(p kernel.Program) bool { return p.ID == id && p.Ours })
		if i < 0 {
			continue
		}
		if out[family], err = readTable(r, &programs[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readTable(r *kernel.Reader, p *kernel.Program) (tableElements, error) {
	t := tableElements{listeners: make(map[string]bool), slots: make(map[string][]string)}
	for _, s := range p.Sets {
		isSlots := slices.Contains(slotMaps, s.Decl.Name)
		if !isSlots && !slices.Contains(listenerMaps, s.Decl.Name) {
			continue
		}
		if s.Err != nil {
			return t, s.Err
		}
		all, err := r.Elements(p.ID, s.Decl)
		if err != nil {
			return t, err
		}
		for _, e := range all {
			key := s.Decl.FormatKey(e)
			if !isSlots {
				t.listeners[key] = true
				continue
			}
			// The last part is the slot.
			if i := strings.LastIndex(key, " . "); i > 0 {
				t.slots[key[:i]] = append(t.slots[key[:i]], s.Decl.FormatData(e))
			}
		}
	}
	return t, nil
}
