package statedir

import (
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/weft-proxy/weft/conntrack"
)

// FlowNotes stores the destinations whose flows are to be removed. It implements
// flows.Notes.
type FlowNotes struct{ dir *Dir }

// FlowNotes returns the notes of package flows.
func (d *Dir) FlowNotes() *FlowNotes { return &FlowNotes{d} }

// Load returns what [Dir.Load] has read.
func (n *FlowNotes) Load() ([]conntrack.Change, error) { return n.dir.flows, nil }

// Save replaces the stored destinations.
func (n *FlowNotes) Save(deserted []conntrack.Change) error {
	err := n.dir.update(func(tx *bolt.Tx) error {
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
