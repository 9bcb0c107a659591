package aggregatortest

import (
	"fmt"
	"maps"
	"slices"
	"syscall"

	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Packet puts an entry into a map, as an update statement would: an existing key keeps its value.
func (k *Kernel) Packet(id nft.TableID, name, key, value string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := item[set](k.tables[id], "set "+name)
	if s == nil {
		return fmt.Errorf("map %s of table %s: %w", name, id, syscall.ENOENT)
	}
	e, err := s.decl.PackKey(key)
	if err != nil {
		return err
	}
	full, err := s.decl.Pack(nft.Element{Key: key, Value: value})
	if err != nil {
		return err
	}
	if _, ok := s.elements[keyOf(e)]; !ok {
		s.elements[keyOf(e)] = full
	}
	return nil
}

// DumpSet returns the elements of a set or map.
func (k *Kernel) DumpSet(id nft.TableID, s *nftset.Set) ([]nftset.Element, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.RefuseDump != nil {
		if err := k.RefuseDump(); err != nil {
			return nil, err
		}
	}
	held := item[set](k.tables[id], "set "+s.Name)
	if held == nil {
		return nil, fmt.Errorf("dump set %s of table %s: %w", s.Name, id, syscall.ENOENT)
	}
	return slices.Collect(maps.Values(held.elements)), nil
}
