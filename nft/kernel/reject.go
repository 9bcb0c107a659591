package kernel

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
)

func (l *link) rejection(e *encoder, r result, ops []Op) error {
	if len(r.failures) == 0 {
		return nil
	}
	be := e.batchError(r.failures[0], ops)
	for _, f := range r.failures[1:] {
		be.Errors = append(be.Errors, e.batchError(f, ops))
	}
	l.explain(be)
	return be
}

func (e *encoder) batchError(f failure, ops []Op) *BatchError {
	m := e.messages[f.message]
	be := &BatchError{Index: m.op, Element: -1, Errno: f.errno, ExtAck: f.kernelError.message}
	if m.op < 0 {
		return be
	}
	be.Op = ops[m.op]
	if m.element >= 0 && f.offset > 0 {
		if i := elementAt(e.buf[m.offset:e.end(f.message)], f.offset); i >= 0 {
			be.Element = m.element + i
		}
	}
	return be
}

func (l *link) explain(be *BatchError) {
	switch {
	case be.Index < 0 && be.Errno == unix.EPERM:
		be.Err = ErrPermission
	case be.Op == nil:
	case be.Errno == unix.EPERM:
		be.Err = l.ownedError(be.Op.table())
	case be.Errno == unix.EEXIST:
		if add, ok := be.Op.(AddTable); ok {
			be.Err = l.existsError(add.Table)
		}
	}
}

func (l *link) existsError(id nft.TableID) error {
	t, err := l.table(id)
	switch {
	case err != nil:
		return err
	case !t.Ours:
		return fmt.Errorf("table %s: %w", id, ErrForeignTable)
	default:
		return fmt.Errorf("table %s: %w", id, ErrNotAdopted)
	}
}

func (l *link) ownedError(id nft.TableID) error {
	owned := &OwnedError{Table: id}
	if t, err := l.table(id); err == nil {
		owned.PortID = t.Owner
	}
	if owned.PortID != 0 {
		owned.PID, owned.Process = processOf(l.netNS, owned.PortID)
	}
	return owned
}
