package statedir

import (
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/weft-proxy/weft/conntrack"
)

// SaveFlows replaces the stored destinations whose flows are to be removed.
func (d *Dir) SaveFlows(deserted []conntrack.Change) error {
	err := d.update(func(tx *bolt.Tx) error {
		if len(deserted) == 0 {
			return tx.Bucket(stateBucket).Delete(flowsKey)
		}
		return putJSON(tx, flowsKey, deserted)
	})
	if err != nil {
		return fmt.Errorf("store flows: %w", err)
	}
	return nil
}
