package aggregator

import (
	"errors"

	"github.com/weft-proxy/weft/aggregator/admission"
	"github.com/weft-proxy/weft/aggregator/events"
)

var (
	// ErrNotFound means that the fragment does not exist.
	ErrNotFound = errors.New("no such fragment")
	// ErrNoObject means that weft has no such object in the kernel.
	ErrNoObject = errors.New("no such object")
	// ErrHidden means that the object belongs to publishers hidden from the reader.
	ErrHidden = errors.New("object of other publishers")
	// ErrInvalidName means that a name, a family or an element's key is malformed.
	ErrInvalidName = admission.ErrInvalidName
	// ErrProtocol means that a request breaks the protocol, for example by an update between the parts of
	// a snapshot.
	ErrProtocol = errors.New("protocol error")
	// ErrStarting means that the kernel's tables are not adopted yet.
	ErrStarting = errors.New("starting: the kernel's tables are not adopted yet")
	// ErrStandby means that another process holds the tables.
	ErrStandby = errors.New("standing by: another process owns weft's tables")
	// ErrStopped means that the aggregator has stopped or is stopping.
	ErrStopped = errors.New("aggregator stopped")
	// ErrCleanedUp is the error of Run after Cleanup.
	ErrCleanedUp = errors.New("all tables are removed")
	// ErrGone means that the sender was gone before its update was applied or the aggregator had started.
	ErrGone = errors.New("caller is gone")
	// ErrSlowWatcher means that a slow watcher was dropped.
	ErrSlowWatcher = events.ErrSlowWatcher
	// ErrKernel means that the kernel failed during a Plan, a read of live values, or a call for conntrack
	// entries.
	ErrKernel = errors.New("kernel unavailable")
)

// RejectedError is the refusal of an update: the fragment keeps the last committed content.
type RejectedError = admission.RejectedError
