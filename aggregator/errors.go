package aggregator

import (
	"errors"
	"fmt"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

var (
	// ErrNotFound means that there is no such fragment.
	ErrNotFound = errors.New("no such fragment")
	// ErrNoObject means that the kernel holds no such object of weft's.
	ErrNoObject = errors.New("no such object")
	// ErrInvalidName means that a publisher or fragment name is malformed.
	ErrInvalidName = errors.New("invalid name")
	// ErrProtocol means that a request makes no sense where it came.
	ErrProtocol = errors.New("protocol error")
	// ErrStarting means that the kernel's tables are not adopted yet.
	ErrStarting = errors.New("starting: the kernel's tables are not adopted yet")
	// ErrStandby means that another process holds the tables.
	ErrStandby = errors.New("standing by: another process owns weft's tables")
	// ErrStopped means that the aggregator has stopped or is stopping.
	ErrStopped = errors.New("aggregator stopped")
	// ErrCleanedUp is what Run returns after Cleanup: there is nothing left to do.
	ErrCleanedUp = errors.New("all tables are removed")
	// ErrGone means that the sender of an update was gone before its turn came.
	ErrGone = errors.New("caller is gone")
	// ErrSlowWatcher means that a watcher did not keep up and was dropped.
	ErrSlowWatcher = errors.New("watcher too slow: events were lost")
	// ErrKernel means that the kernel could not be brought to the desired
	// state, through no fault of the update.
	ErrKernel = errors.New("kernel unavailable")
)

// RejectedError is the refusal of an update. Its fragment stays at the last
// committed content.
type RejectedError struct {
	Fragment desired.Key
	// Violations has at least one entry, in the order of the request.
	Violations []*weftv1.Violation
	// Refusals are those of the violations that the configuration makes of
	// it, one for each right and limit.
	Refusals []*access.Refusal
}

// Error returns the first violation and how many more there are.
func (e *RejectedError) Error() string {
	s := "fragment " + e.Fragment.String() + " rejected"
	if len(e.Violations) == 0 {
		return s
	}
	v := e.Violations[0]
	if v.GetObject() != "" {
		s += ": " + v.GetObject()
	}
	s += ": " + v.GetMessage()
	if n := len(e.Violations) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// reject makes a RejectedError with one violation.
func reject(key desired.Key, reason weftv1.Reason, object, format string, args ...any) *RejectedError {
	return &RejectedError{Fragment: key, Violations: []*weftv1.Violation{{
		Object: object, Message: fmt.Sprintf(format, args...), Reason: reason,
	}}}
}
