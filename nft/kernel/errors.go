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
	// ErrPermission says that the process may not change the ruleset.
	ErrPermission = errors.New("missing CAP_NET_ADMIN in the user namespace that owns the network namespace: run as root, or give the process that capability")
	// ErrNoNFTables says that the kernel has no nf_tables.
	ErrNoNFTables = errors.New("kernel has no nf_tables: load the module nf_tables, or build it in")
)

// Errors of Commit, Claim and Dump.
var (
	// ErrUnknownOutcome says that the socket failed after a batch was sent: it
	// may have taken effect or not. Dump tells.
	ErrUnknownOutcome = errors.New("outcome of the batch is unknown: reread the ruleset")
	// ErrForeignTable says that a table of that name exists which weft did not
	// create.
	ErrForeignTable = errors.New("table exists and was not created by weft: rename one of the two, or delete the table if nothing needs it")
	// ErrOurs says that a table is weft's where one of somebody else's is meant.
	ErrOurs = errors.New("table was created by weft: withdraw its fragments, or clean up")
	// ErrNotClaimed says that an Op names a table that this Conn neither
	// created nor claimed.
	ErrNotClaimed = errors.New("table was neither created nor claimed by this connection: claim it first")
	// ErrTooLarge says that a batch does not fit into the socket's send buffer;
	// only processes without CAP_NET_ADMIN in the initial user namespace are
	// bound by one.
	ErrTooLarge = errors.New("batch exceeds the socket's send buffer: raise net.core.wmem_max, or give the process CAP_NET_ADMIN in the initial user namespace")
	// ErrBusy says that other writers changed the ruleset each time that a
	// batch, or a dump, was tried. Nothing took effect.
	ErrBusy = errors.New("other writers kept changing the ruleset: try again")
	// ErrDrift says that a table of the connection's was deleted or replaced by
	// another process (only where tables are not owned). Nothing took effect;
	// Dump, compare, go on.
	ErrDrift = errors.New("another process deleted or replaced the table: reread the ruleset")
	// ErrMalformed says that an answer of the kernel could not be decoded.
	ErrMalformed = attr.ErrMalformed
	// ErrClosed says that the Conn was closed.
	ErrClosed = errors.New("connection is closed")
)

// BatchError is the rejection of a batch; nothing of it took effect.
type BatchError struct {
	// Index is the culprit's place in the batch's ops; -1 where the kernel
	// blames the batch as a whole.
	Index int
	// Element is the place of the element that the kernel points at in the
	// op's Elements; -1 where it does not.
	Element int
	// Op is the culprit; nil where Index is -1.
	Op Op
	// Errno is the kernel's answer; 0 where the op could not be encoded, and
	// Err says why.
	Errno syscall.Errno
	// ExtAck is the kernel's explanation, often empty.
	ExtAck string
	// Err tells more than Errno where more is known, such as ErrForeignTable or
	// an *OwnedError.
	Err error
	// Errors are the kernel's further errors in the same batch. Most of them
	// follow from the first.
	Errors []*BatchError
}

// Error names the op in nft's words, cut short where it is long.
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

// Format prints all errors of the batch under %+v, and Error otherwise.
func (e *BatchError) Format(s fmt.State, verb rune) {
	_, _ = io.WriteString(s, e.Error())
	if verb != 'v' || !s.Flag('+') {
		return
	}
	for _, more := range e.Errors {
		_, _ = io.WriteString(s, "\n"+more.Error())
	}
}

// Unwrap returns the errno and what is known beyond it.
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

// cause puts the errno into words.
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

// OwnedError says that a table belongs to another process.
type OwnedError struct {
	Table nft.TableID
	// PortID is the netlink port of the owner; 0 where it is not known.
	PortID uint32
	// PID and Process are the owner's; 0 and empty where the process could not
	// be found, as when it is in another PID namespace.
	PID     int
	Process string
}

// Error names the table and its owner.
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
