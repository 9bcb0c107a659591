package statedir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
)

// Record has the declarations for the next start.
type Record struct {
	// Partial is true while the kernel may hold content without a known fragment, after the loss of
	// a record.
	Partial bool           `json:"partial,omitempty"`
	Desired desired.Record `json:"desired"`
}

// revisionsAhead is the number of revisions that one write reserves.
const revisionsAhead = 10_000

// SaveRecord stores a changed record before its commit, which may use revision. After a failure the
// stored record is marked as outdated.
func (d *Dir) SaveRecord(r Record, revision uint64) error {
	if !d.store.Enabled() {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	if bytes.Equal(text, d.record) && !hasShares(&r.Desired) {
		return d.ReserveRevision(revision)
	}
	err = d.store.Update(func(tx *store.Tx) error {
		return errors.Join(put(tx, recordBucket, recordKey, text), putRevision(tx, revision+revisionsAhead), putShares(tx, &r.Desired))
	})
	if err != nil {
		d.store.Failed(KindRecord)
		d.record = nil
		return errors.Join(fmt.Errorf("store record: %w", err), d.store.SetOutdated(true))
	}
	d.record, d.reserved = text, revision+revisionsAhead
	return d.store.SetOutdated(false)
}

// ReserveRevision makes sure that no later start uses a revision again.
func (d *Dir) ReserveRevision(revision uint64) error {
	if !d.store.Enabled() || revision <= d.reserved {
		return nil
	}
	if err := d.store.Update(func(tx *store.Tx) error { return putRevision(tx, revision+revisionsAhead) }); err != nil {
		d.store.Failed(KindRecord)
		return fmt.Errorf("store revision: %w", err)
	}
	d.reserved = revision + revisionsAhead
	return nil
}

// RemoveRecord removes the record of an empty kernel. Fragments stay.
func (d *Dir) RemoveRecord() error {
	if !d.store.Enabled() {
		return nil
	}
	d.record = nil
	err := d.store.Update(func(tx *store.Tx) error {
		return errors.Join(put(tx, recordBucket, recordKey, nil), putShares(tx, &desired.Record{}))
	})
	if err != nil {
		return fmt.Errorf("remove record: %w", err)
	}
	return nil
}
