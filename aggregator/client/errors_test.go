package client

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func TestRejectedErrorFormats(t *testing.T) {
	err := &RejectedError{Fragment: "list", Violations: []*weftv1.Violation{
		{Object: "table ip demo chain input rule 2", Message: "unknown field \"dprot\"", Line: 1, Column: 5, Excerpt: "tcp dprot 80\n    ^", Reason: weftv1.Reason_REASON_SYNTAX},
		{Object: "table ip demo set s element x", Message: "not an address"},
	}}
	const oneLine = `fragment list rejected: table ip demo chain input rule 2: 1:5: unknown field "dprot" (and 1 more)`
	const detail = `fragment list rejected:
  table ip demo chain input rule 2: 1:5: unknown field "dprot"
    tcp dprot 80
        ^
  table ip demo set s element x: not an address`
	wrapped := fmt.Errorf("apply list: %w", err)
	for format, want := range map[string]string{"%v": oneLine, "%s": oneLine, "%+v": detail} {
		if got := fmt.Sprintf(format, err); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", format, got, want)
		}
	}
	if got := wrapped.Error(); got != "apply list: "+oneLine {
		t.Errorf("wrapped: %s", got)
	}
	if !err.Has(weftv1.Reason_REASON_SYNTAX) || err.Has(weftv1.Reason_REASON_KERNEL) {
		t.Error("Has is wrong")
	}
}

func TestFromStatus(t *testing.T) {
	for code, want := range map[codes.Code]error{
		codes.Unavailable: ErrUnavailable, codes.PermissionDenied: ErrPermission, codes.NotFound: ErrNotFound, codes.ResourceExhausted: ErrTooLarge,
	} {
		err := fromStatus("f", status.Error(code, "why"))
		if !errors.Is(err, want) || status.Code(err) != code {
			t.Errorf("%v became %v", code, err)
		}
	}
	st, err := status.New(codes.ResourceExhausted, "x").WithDetails(&weftv1.Rejected{Violations: []*weftv1.Violation{{Message: "m"}}})
	if err != nil {
		t.Fatal(err)
	}
	var r *RejectedError
	if err := fromStatus("f", st.Err()); !errors.As(err, &r) || r.Fragment != "f" || len(r.Violations) != 1 {
		t.Errorf("details became %v", err)
	}
	if fromStatus("f", nil) != nil {
		t.Error("nil became an error")
	}
}
