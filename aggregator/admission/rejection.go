package admission

import (
	"errors"
	"fmt"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// ErrInvalidName means that the name of a publisher or fragment is malformed.
var ErrInvalidName = errors.New("invalid name")

// ErrTooLarge means that a request has more than one update may have.
var ErrTooLarge = errors.New("the request is too large")

// RejectedError is the refusal of an update. Its fragment keeps the last
// committed content.
type RejectedError struct {
	Fragment desired.Key
	// Violations has at least one entry, in the order of the request.
	Violations []*weftv1.Violation
	// Refusals are the violations of the publisher's rights and limits, one for
	// each right and limit.
	Refusals []*access.Refusal
}

// Error returns the first violation and how many more there are.
func (e *RejectedError) Error() string {
	s := "fragment " + e.Fragment.String() + " rejected"
	if len(e.Violations) == 0 {
		return s
	}
	v := e.Violations[0]
	if v.GetObject() != nil {
		s += ": " + v.GetObject().Text()
	}
	s += ": " + v.GetMessage()
	if n := len(e.Violations) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// Reject returns a RejectedError with one violation.
func Reject(key desired.Key, reason weftv1.Violation_Reason, object *weftv1.ObjectName, format string, args ...any) *RejectedError {
	return &RejectedError{Fragment: key, Violations: []*weftv1.Violation{Shorten(&weftv1.Violation{
		Object: object, Message: fmt.Sprintf(format, args...), Reason: reason,
	})}}
}
