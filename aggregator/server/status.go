package server

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// toStatus gives an error its gRPC code. It is the one place that does. A
// rejection carries its violations as a weft.v1.Rejected in the details, an error that
// goes away by itself a google.rpc.RetryInfo.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	var later *retryError
	if errors.As(err, &later) {
		st := status.Convert(toStatus(later.error))
		if with, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(later.delay)}); err == nil {
			st = with
		}
		return st.Err()
	}
	var rejected *aggregator.RejectedError
	var refusal *access.Refusal
	switch {
	case errors.As(err, &rejected):
		return withViolations(rejectionCode(rejected), rejected.Error(), rejected.Violations)
	case errors.As(err, &refusal) && refusal.Limit == access.LimitUpdates:
		// It is about an update, as are the limits that are found out later.
		return withViolations(codeOf(err), err.Error(), []*weftv1.Violation{{Message: refusal.Text, Reason: weftv1.Violation_REASON_LIMIT}})
	}
	return status.Error(codeOf(err), err.Error())
}

// withViolations makes a status with violations in its details.
func withViolations(code codes.Code, text string, v []*weftv1.Violation) error {
	st := status.New(code, text)
	if with, err := st.WithDetails(&weftv1.Rejected{Violations: v}); err == nil {
		st = with
	}
	return st.Err()
}

// codeOf returns the code of an error that is not a rejection.
func codeOf(err error) codes.Code {
	switch {
	case errors.Is(err, access.ErrDenied):
		return codes.PermissionDenied
	case errors.Is(err, errAnonymous):
		return codes.Unauthenticated
	case errors.Is(err, errPanic):
		return codes.Internal
	case errors.Is(err, aggregator.ErrNotFound), errors.Is(err, aggregator.ErrNoObject):
		return codes.NotFound
	case errors.Is(err, aggregator.ErrInvalidName), errors.Is(err, aggregator.ErrProtocol):
		return codes.InvalidArgument
	case errors.Is(err, aggregator.ErrStandby), errors.Is(err, aggregator.ErrStopped), errors.Is(err, aggregator.ErrKernel):
		return codes.Unavailable
	case errors.Is(err, aggregator.ErrSlowWatcher), errors.Is(err, access.ErrExceeded), errors.Is(err, errLimit):
		return codes.ResourceExhausted
	case errors.Is(err, context.Canceled), errors.Is(err, aggregator.ErrGone):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	}
	// The transport's own errors, such as a message that is too large, have
	// a code.
	if st, ok := status.FromError(err); ok {
		return st.Code()
	}
	return codes.Internal
}

// rejectionCode returns the code of a rejection, by its first violation.
func rejectionCode(r *aggregator.RejectedError) codes.Code {
	if len(r.Violations) == 0 {
		return codes.InvalidArgument
	}
	switch r.Violations[0].GetReason() {
	case weftv1.Violation_REASON_CONFLICT, weftv1.Violation_REASON_REFERENCE, weftv1.Violation_REASON_KERNEL,
		weftv1.Violation_REASON_SNAPSHOT_NEEDED, weftv1.Violation_REASON_TAKEN_OVER, weftv1.Violation_REASON_EXPIRED:
		return codes.FailedPrecondition
	case weftv1.Violation_REASON_PERMISSION:
		return codes.PermissionDenied
	case weftv1.Violation_REASON_LIMIT:
		return codes.ResourceExhausted
	case weftv1.Violation_REASON_UNSPECIFIED, weftv1.Violation_REASON_SYNTAX, weftv1.Violation_REASON_INVALID:
		return codes.InvalidArgument
	default:
		return codes.InvalidArgument
	}
}
