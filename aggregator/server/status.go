package server

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/aggregator/turns"
	"github.com/weft-proxy/weft/aggregator/unconfirmed"
)

// toStatus gives an error its gRPC code; no other function does. A rejection carries its violations
// as a weft.v1.Rejected in the details, a temporary error a google.rpc.RetryInfo.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return err
	}
	var later *retryError
	if errors.As(err, &later) {
		return withDetail(status.Convert(toStatus(later.error)), &errdetails.RetryInfo{RetryDelay: durationpb.New(later.delay)})
	}
	var rejected *aggregator.RejectedError
	var refusal *access.Refusal
	switch {
	case errors.As(err, &rejected):
		return withDetail(status.New(rejectionCode(rejected), rejected.Error()), &weftv1.Rejected{Violations: rejected.Violations})
	case errors.As(err, &refusal) && refusal.Limit == access.LimitUpdates:
		// The refusal is about an update, as are limits found later.
		limit := &weftv1.Violation{Message: refusal.Text, Reason: weftv1.Violation_REASON_LIMIT}
		return withDetail(status.New(codeOf(err), err.Error()), &weftv1.Rejected{Violations: []*weftv1.Violation{limit}})
	}
	return status.Error(codeOf(err), err.Error())
}

func withDetail(st *status.Status, detail protoadapt.MessageV1) error {
	if with, err := st.WithDetails(detail); err == nil {
		st = with
	}
	return st.Err()
}

// statusCodes maps errors other than rejections to codes. The first match counts.
var statusCodes = []struct {
	err  error
	code codes.Code
}{
	{access.ErrDenied, codes.PermissionDenied},
	{errAnonymous, codes.Unauthenticated},
	{errMalformed, codes.InvalidArgument},
	{errPanic, codes.Internal},
	{errNoFlowTable, codes.Unimplemented},
	{errNotServed, codes.FailedPrecondition},
	{errAnswer, codes.Aborted},
	{aggregator.ErrNotFound, codes.NotFound},
	{aggregator.ErrNoObject, codes.NotFound},
	{history.ErrForgotten, codes.NotFound},
	{history.ErrNoRevision, codes.NotFound},
	{history.ErrTooLarge, codes.ResourceExhausted},
	{history.ErrDisabled, codes.Unimplemented},
	{unconfirmed.ErrDisabled, codes.Unimplemented},
	{unconfirmed.ErrNone, codes.NotFound},
	{unconfirmed.ErrNotStored, codes.Unavailable},
	{history.ErrUnavailable, codes.Unavailable},
	{aggregator.ErrHidden, codes.PermissionDenied},
	{aggregator.ErrInvalidName, codes.InvalidArgument},
	{aggregator.ErrProtocol, codes.InvalidArgument},
	{aggregator.ErrStandby, codes.Unavailable},
	{aggregator.ErrStopped, codes.Unavailable},
	{aggregator.ErrKernel, codes.Unavailable},
	{aggregator.ErrSlowWatcher, codes.ResourceExhausted},
	{access.ErrExceeded, codes.ResourceExhausted},
	{admission.ErrTooLarge, codes.ResourceExhausted},
	{errLimit, codes.ResourceExhausted},
	{turns.ErrBusy, codes.ResourceExhausted},
	{context.Canceled, codes.Canceled},
	{aggregator.ErrGone, codes.Canceled},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
}

func codeOf(err error) codes.Code {
	for _, c := range statusCodes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	// The transport's own errors have a code.
	if st, ok := status.FromError(err); ok {
		return st.Code()
	}
	return codes.Internal
}

func rejectionCode(r *aggregator.RejectedError) codes.Code {
	if len(r.Violations) == 0 {
		return codes.InvalidArgument
	}
	switch r.Violations[0].GetReason() {
	case weftv1.Violation_REASON_CONFLICT, weftv1.Violation_REASON_REFERENCE, weftv1.Violation_REASON_KERNEL,
		weftv1.Violation_REASON_SNAPSHOT_NEEDED, weftv1.Violation_REASON_TAKEN_OVER, weftv1.Violation_REASON_EXPIRED, weftv1.Violation_REASON_UNCONFIRMED:
		return codes.FailedPrecondition
	case weftv1.Violation_REASON_PERMISSION:
		return codes.PermissionDenied
	case weftv1.Violation_REASON_LIMIT:
		return codes.ResourceExhausted
	default:
		return codes.InvalidArgument
	}
}
