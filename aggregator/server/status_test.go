package server

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func TestToStatus(t *testing.T) {
	rejected := func(r weftv1.Violation_Reason) error {
		return &aggregator.RejectedError{Violations: []*weftv1.Violation{{Message: "no", Reason: r}}}
	}
	tests := []struct {
		err  error
		want codes.Code
	}{
		{nil, codes.OK},
		{access.ErrDenied, codes.PermissionDenied},
		{access.ErrExceeded, codes.ResourceExhausted},
		{&access.Refusal{Limit: access.LimitStreams}, codes.ResourceExhausted},
		{&access.Refusal{Limit: access.LimitUpdates}, codes.ResourceExhausted},
		{&access.Refusal{Limit: access.LimitTable}, codes.PermissionDenied},
		{errAnonymous, codes.Unauthenticated},
		{errPanic, codes.Internal},
		{aggregator.ErrNotFound, codes.NotFound},
		{aggregator.ErrInvalidName, codes.InvalidArgument},
		{aggregator.ErrProtocol, codes.InvalidArgument},
		{aggregator.ErrStandby, codes.Unavailable},
		{aggregator.ErrStopped, codes.Unavailable},
		{aggregator.ErrSlowWatcher, codes.ResourceExhausted},
		{errLimit, codes.ResourceExhausted},
		{context.Canceled, codes.Canceled},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{status.Error(codes.ResourceExhausted, "large"), codes.ResourceExhausted},
		{fmt.Errorf("what: %w", fmt.Errorf("else")), codes.Internal},
		{rejected(weftv1.Violation_REASON_SYNTAX), codes.InvalidArgument},
		{rejected(weftv1.Violation_REASON_CONFLICT), codes.FailedPrecondition},
		{rejected(weftv1.Violation_REASON_KERNEL), codes.FailedPrecondition},
		{rejected(weftv1.Violation_REASON_LIMIT), codes.ResourceExhausted},
		{rejected(weftv1.Violation_REASON_PERMISSION), codes.PermissionDenied},
		{rejected(weftv1.Violation_REASON_EXPIRED), codes.FailedPrecondition},
		{rejected(weftv1.Violation_REASON_UNCONFIRMED), codes.FailedPrecondition},
	}
	for _, tt := range tests {
		if tt.err != nil {
			tt.err = fmt.Errorf("call: %w", tt.err)
		}
		if got := status.Code(toStatus(tt.err)); got != tt.want {
			t.Errorf("%v: code %v, want %v", tt.err, got, tt.want)
		}
	}
}

// TestStatusStays passes a status of another service on without a second code in its text.
func TestStatusStays(t *testing.T) {
	want := status.Error(codes.NotFound, "no Service a/b")
	if got := toStatus(want); got.Error() != want.Error() {
		t.Errorf("%v became %v", want, got)
	}
}

// TestRetryInfo has the delay of a refusal in the details of its status.
func TestRetryInfo(t *testing.T) {
	err := toStatus(&retryError{error: &access.Refusal{Limit: access.LimitUpdates, Text: "too fast"}, delay: 1500 * time.Millisecond})
	st := status.Convert(err)
	if st.Code() != codes.ResourceExhausted || len(st.Details()) != 2 {
		t.Fatalf("status %v with details %v", st, st.Details())
	}
	if _, ok := st.Details()[0].(*weftv1.Rejected); !ok {
		t.Errorf("first detail is %v, want the violations", st.Details()[0])
	}
	info, ok := st.Details()[1].(*errdetails.RetryInfo)
	if !ok || info.GetRetryDelay().AsDuration() != 1500*time.Millisecond {
		t.Errorf("second detail is %v, want 1.5s", st.Details()[1])
	}
}
