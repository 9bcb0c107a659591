package statedir

import (
	"encoding/json"
	"fmt"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
)

// apart visits each table with shares apart from the record; id is its bucket.
func apart(r *desired.Record, visit func(id string, t *desired.TableRecord) error) error {
	for _, f := range r.Fragments {
		for i := range f.Tables {
			t := &f.Tables[i]
			if !t.Apart {
				continue
			}
			if err := visit(fmt.Sprintf("%s/%s %s %s", f.Publisher, f.Name, t.Family, t.Name), t); err != nil {
				return err
			}
		}
	}
	return nil
}

func hasShares(r *desired.Record) (has bool) {
	_ = apart(r, func(_ string, t *desired.TableRecord) error {
		has = has || t.Whole || len(t.Shares) > 0
		return nil
	})
	return has
}

// putShares stores the changed shares apart from a record, and removes other tables.
func putShares(tx *store.Tx, r *desired.Record) error {
	b, err := tx.Bucket(sharesBucket)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	err = apart(r, func(id string, t *desired.TableRecord) error {
		known[id] = true
		if err := putTable(b, id, t); err != nil {
			return fmt.Errorf("shares of %s: %w", id, err)
		}
		return nil
	})
	for _, id := range b.Names() {
		if !known[id] && err == nil {
			err = b.DeleteBucket(id)
		}
	}
	return err
}

func putTable(b *store.Bucket, id string, t *desired.TableRecord) error {
	if t.Whole {
		if err := b.DeleteBucket(id); err != nil {
			return err
		}
	}
	shares, err := b.Obtain(id)
	for key, share := range t.Shares {
		var text []byte
		if share != nil && err == nil {
			text, err = json.Marshal(share)
		}
		if err == nil {
			err = shares.Put(key, text)
		}
	}
	return err
}

// readShares adds the shares apart from a record to it.
func readShares(tx *store.Tx, r *desired.Record) error {
	b, err := tx.Bucket(sharesBucket)
	if err != nil {
		return err
	}
	return apart(r, func(id string, t *desired.TableRecord) error {
		shares := b.Bucket(id)
		if shares == nil {
			return fmt.Errorf("%w: shares of %s are missing", store.ErrDamaged, id)
		}
		t.Apart = false
		for _, text := range shares.From("") {
			var share desired.TableRecord
			if err := json.Unmarshal(text, &share); err != nil {
				return fmt.Errorf("%w: shares of %s: %w", store.ErrDamaged, id, err)
			}
			t.Add(&share)
		}
		return nil
	})
}
