package kernel

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
)

// Errors of Open.
var (
	// ErrPermission means a missing CAP_NET_ADMIN.
	ErrPermission = errors.New("missing CAP_NET_ADMIN in the user namespace that owns the network namespace: run as root, or give the process that capability")
	// ErrNoNFTables means a kernel without nf_tables.
	ErrNoNFTables = errors.New("kernel has no nf_tables: load the module nf_tables, or build it in")
	// ErrTooOld means a kernel that does not store the mark of weft's tables (before Linux 5.10).
	ErrTooOld = errors.New("kernel is too old: it does not store userdata of tables; weft needs Linux 5.13")
)

// Errors of the methods of Conn.
var (
	// ErrUnknownOutcome means that the socket failed after a batch was sent, or the handles of new
	// rules are not known. The batch took effect completely or not at all; call Dump to find out.
	ErrUnknownOutcome = errors.New("outcome of the batch is unknown: reread the ruleset")
	// ErrForeignTable means a table without weft's mark.
	ErrForeignTable = errors.New("table exists and was not created by weft: rename one of the two, or delete the table if nothing needs it")
	// ErrOurs is RemoveForeign's error for weft's tables.
	ErrOurs = errors.New("table was created by weft: withdraw its fragments, or run weft cleanup")
	// ErrNotAdopted means a table neither created nor adopted by this Conn.
	ErrNotAdopted = errors.New("table was neither created nor adopted by this connection: adopt it first")
	// ErrTooLarge means that a batch exceeds the socket's send buffer, which is limited only
	// without CAP_NET_ADMIN in the initial user namespace.
	ErrTooLarge = errors.New("batch exceeds the socket's send buffer: raise net.core.wmem_max, or give the process CAP_NET_ADMIN in the initial user namespace")
	// ErrBusy means that other processes changed the ruleset during each attempt.
	ErrBusy = errors.New("other processes keep changing the ruleset: try again")
	// ErrDrift means that another process deleted or replaced a table without ownership.
	ErrDrift = errors.New("another process deleted or replaced the table: reread the ruleset")
	// ErrMalformed is a malformed message.
	ErrMalformed = attr.ErrMalformed
	// ErrClosed means that the Conn was closed.
	ErrClosed = errors.New("connection is closed")
)

// BatchError is a rejected batch, which had no effect.
type BatchError struct {
	// Index is the failing op; -1 for the whole batch.
	Index int
	// Element is the index in the op's Elements; -1 if not known.
	Element int
	// Op is nil if Index is -1.
	Op Op
	// Errno is 0 if the op could not be encoded because of Err.
	Errno syscall.Errno
	// ExtAck is the kernel's explanation, often empty.
	ExtAck string
	// Err explains Errno, for example as an *OwnedError.
	Err error
	// Errors are further errors, mostly consequences of the first.
	Errors []*BatchError
}

// Error returns the op as a command of nft(8) and the cause.
func (e *BatchError) Error() string {
	var b strings.Builder
	b.WriteString("commit ")
	if e.Op == nil {
		b.WriteString("batch")
	} else {
		b.WriteString(summarize(e.Op, e.Element))
	}
	b.WriteString(": ")
	b.WriteString(e.cause())
	if n := len(e.Errors); n > 0 {
		fmt.Fprintf(&b, " (and %d more errors)", n)
	}
	return b.String()
}

// Format prints all Errors for %+v.
func (e *BatchError) Format(s fmt.State, verb rune) {
	_, _ = io.WriteString(s, e.Error())
	if verb != 'v' || !s.Flag('+') {
		return
	}
	for _, more := range e.Errors {
		_, _ = io.WriteString(s, "\n"+more.Error())
	}
}

// Unwrap returns Errno and Err.
func (e *BatchError) Unwrap() []error {
	var errs []error
	if e.Errno != 0 {
		errs = append(errs, e.Errno)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

func (e *BatchError) cause() string {
	var parts []string
	if e.Errno != 0 {
		parts = append(parts, e.Errno.Error())
	}
	if e.ExtAck != "" {
		parts = append(parts, e.ExtAck)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// OwnedError says that another process owns a table.
type OwnedError struct {
	Table nft.TableID
	// PortID is the owner's netlink port, or 0.
	PortID uint32
	// 0 and empty if not found, for example in another PID namespace
	PID     int
	Process string
}

// Error returns the table and its owner.
func (e *OwnedError) Error() string {
	switch {
	case e.PID != 0:
		return fmt.Sprintf("table %s is owned by process %d (%s): stop that process first", e.Table, e.PID, e.Process)
	case e.PortID != 0:
		return fmt.Sprintf("table %s is owned by another process (netlink port %d): stop that process first", e.Table, e.PortID)
	default:
		return fmt.Sprintf("table %s is owned by another process: stop that process first", e.Table)
	}
}
