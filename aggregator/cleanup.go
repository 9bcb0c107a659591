package aggregator

import (
	"context"
	"fmt"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// Cleanup removes all tables that weft made, in one transaction, and returns them.
// Then Run ends with ErrCleanedUp, and pending updates are answered with
// ErrStopped. Durable fragments stay in the state directory: the next start
// commits them again. On an error nothing is removed, and Run goes on.
//
// Possible errors: ErrStandby, ErrStopped, the kernel's, ctx's.
func (a *Aggregator) Cleanup(ctx context.Context) (tables []nft.TableID, err error) {
	if asked := a.ask(ctx, func(w *writer) { tables, err = w.cleanup() }); asked != nil {
		return nil, asked
	}
	return tables, err
}

// cleanup removes all tables, after which the writer ends.
func (w *writer) cleanup() ([]nft.TableID, error) {
	tables, err := w.removeAll()
	if err != nil {
		w.log.Error("cannot remove all tables", "error", err)
		return nil, fmt.Errorf("remove all tables: %w", err)
	}
	w.log.Warn("removed all tables on request, stopping", "tables", len(tables))
	for _, s := range w.held {
		s.answer(Result{Err: ErrStopped})
	}
	w.held = nil
	// The record describes tables that are gone.
	if err := w.dir.RemoveRecord(); err != nil {
		w.log.Error("cannot remove the record", "error", err)
	}
	w.unconfirmed.CleanedUp()
	w.cleanedUp = true
	return tables, nil
}

// removeAll deletes every table that carries weft's mark.
func (w *writer) removeAll() ([]nft.TableID, error) {
	dump, err := w.cfg.Kernel.Dump()
	if err != nil || len(dump) == 0 {
		return nil, err
	}
	tables, ops := make([]nft.TableID, len(dump)), make([]kernel.Op, len(dump))
	for i, t := range dump {
		tables[i], ops[i] = t.ID, kernel.DeleteTable{Table: t.ID}
	}
	if _, err := w.cfg.Kernel.Commit(ops); err != nil {
		// Whatever it was, the next step finds out what is there.
		w.drift = err.Error()
		return nil, err
	}
	return tables, nil
}
