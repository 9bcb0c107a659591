package admission

import (
	"errors"
	"fmt"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// ErrInvalidName means a malformed name of a publisher or fragment.
var ErrInvalidName = errors.New("invalid name")

// ErrTooLarge means that a request exceeds the limits of an update.
var ErrTooLarge = errors.New("the request is too large")

// RejectedError is the rejection of an update. Its fragment keeps the last committed content.
type RejectedError struct {
	Fragment desired.Key
	// at least one, in the order of the request
	Violations []*weftv1.Violation
	// one for each violated right and limit
	Refusals []*access.Refusal
}

// Error returns the first violation and the number of others.
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
