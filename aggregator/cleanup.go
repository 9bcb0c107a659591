package aggregator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// cleanup asks the writer to remove everything.
type cleanup struct {
	tables []nft.TableID
	err    error
	done   chan struct{}
}

// Cleanup removes all tables that weft made, in one transaction, and returns them.
// Then Run ends with ErrCleanedUp, and what is pending is answered with ErrStopped.
// Durable fragments stay in the state directory: the next start commits them again.
// On an error nothing is removed, and Run goes on.
//
// Possible errors: ErrStandby, ErrStopped, the kernel's, ctx's.
func (a *Aggregator) Cleanup(ctx context.Context) ([]nft.TableID, error) {
	if err := a.condition(); err != nil {
		return nil, err
	}
	c := &cleanup{done: make(chan struct{})}
	select {
	case a.writer.cleanups <- c:
	case <-a.stopped:
		return nil, ErrStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	<-c.done
	return c.tables, c.err
}

// cleanup removes all tables; false means that it could not.
func (w *writer) cleanup(c *cleanup) bool {
	defer close(c.done)
	tables, err := w.removeAll()
	if err != nil {
		c.err = fmt.Errorf("remove all tables: %w", err)
		w.log.Error("tables are not removed", "error", err)
		return false
	}
	c.tables = tables
	w.log.Warn("removed all tables on request: the aggregator ends", "tables", len(tables))
	for _, s := range w.held {
		s.answer(Result{Err: ErrStopped})
	}
	w.held = nil
	// The record tells of what has gone.
	if err := w.store.remove(); err != nil {
		w.log.Error("record stays", "error", err)
	}
	return true
}

// removeAll deletes every table that carries weft's mark.
func (w *writer) removeAll() ([]nft.TableID, error) {
	dump, err := w.kernel.Dump()
	if err != nil || len(dump) == 0 {
		return nil, err
	}
	tables, ops := make([]nft.TableID, len(dump)), make([]kernel.Op, len(dump))
	for i, t := range dump {
		tables[i], ops[i] = t.ID, kernel.DeleteTable{Table: t.ID}
	}
	if _, err := w.kernel.Commit(ops); err != nil {
		// Whatever it was, the next step finds out what is there.
		w.drift = err.Error()
		return nil, err
	}
	return tables, nil
}

// remove removes the record, so that the next start knows of nothing.
func (s *store) remove() error {
	if s.dir == "" {
		return nil
	}
	if err := os.Remove(filepath.Join(s.dir, recordName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(s.dir)
}
