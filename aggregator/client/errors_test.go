package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func TestRejectedErrorFormats(t *testing.T) {
	err := &RejectedError{Fragment: "list", Violations: []*weftv1.Violation{
		{Object: &weftv1.ObjectName{Kind: "rule", Family: "ip", Table: "demo", Name: "input", Index: 2}, Message: "unknown field \"dprot\"", Line: 1, Column: 5, Excerpt: "tcp dprot 80\n    ^", Reason: weftv1.Violation_REASON_SYNTAX},
		{Object: &weftv1.ObjectName{Kind: "element", Family: "ip", Table: "demo", Name: "s", Key: "x"}, Message: "not an address"},
	}}
	const oneLine = `fragment list rejected: rule ip demo input #2: 1:5: unknown field "dprot" (and 1 more)`
	const detail = `fragment list rejected:
  rule ip demo input #2: 1:5: unknown field "dprot"
    tcp dprot 80
        ^
  element ip demo s { x }: not an address`
	wrapped := fmt.Errorf("apply list: %w", err)
	for format, want := range map[string]string{"%v": oneLine, "%s": oneLine, "%+v": detail} {
		if got := fmt.Sprintf(format, err); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", format, got, want)
		}
	}
	if got := wrapped.Error(); got != "apply list: "+oneLine {
		t.Errorf("wrapped: %s", got)
	}
	if !err.Has(weftv1.Violation_REASON_SYNTAX) || err.Has(weftv1.Violation_REASON_KERNEL) {
		t.Error("Has is wrong")
	}
}

func TestRejectedErrorIsItsReasons(t *testing.T) {
	sentinels := map[string]error{
		"permission": ErrPermission, "limit": ErrLimit, "taken over": ErrTakenOver, "unavailable": ErrUnavailable, "too large": ErrTooLarge,
	}
	for reason, want := range map[weftv1.Violation_Reason]string{
		weftv1.Violation_REASON_PERMISSION: "permission", weftv1.Violation_REASON_LIMIT: "limit",
		weftv1.Violation_REASON_TAKEN_OVER: "taken over", weftv1.Violation_REASON_SYNTAX: "",
	} {
		err := fmt.Errorf("apply: %w", &RejectedError{Violations: []*weftv1.Violation{{}, {Reason: reason}}})
		for name, s := range sentinels {
			if is := errors.Is(err, s); is != (name == want) {
				t.Errorf("%v: Is(%v) is %v", reason, s, is)
			}
		}
	}
}

func TestRefusalsThatPass(t *testing.T) {
	passing := map[weftv1.Violation_Reason]bool{
		weftv1.Violation_REASON_CONFLICT: true, weftv1.Violation_REASON_REFERENCE: true, weftv1.Violation_REASON_KERNEL: true,
		weftv1.Violation_REASON_PERMISSION: true, weftv1.Violation_REASON_LIMIT: true, weftv1.Violation_REASON_UNCONFIRMED: true,
	}
	for n := range weftv1.Violation_Reason_name {
		r := weftv1.Violation_Reason(n)
		alone := &RejectedError{Violations: []*weftv1.Violation{{Reason: r}}}
		if alone.passing() != passing[r] {
			t.Errorf("%v: passing is %v", r, alone.passing())
		}
		mixed := &RejectedError{Violations: []*weftv1.Violation{{Reason: r}, {Reason: weftv1.Violation_REASON_SYNTAX}}}
		if mixed.passing() {
			t.Errorf("%v and a syntax error are passing", r)
		}
	}
	if (&RejectedError{Violations: []*weftv1.Violation{{Reason: 99}}}).passing() || (&RejectedError{}).passing() {
		t.Error("an unknown reason is passing")
	}
}

func TestFromStatus(t *testing.T) {
	for code, want := range map[codes.Code]error{
		codes.Unavailable: ErrUnavailable, codes.PermissionDenied: ErrPermission, codes.Unauthenticated: ErrPermission,
		codes.NotFound: ErrNotFound, codes.ResourceExhausted: ErrLimit, codes.InvalidArgument: ErrInvalid,
		codes.Unimplemented: errors.ErrUnsupported, codes.Canceled: context.Canceled, codes.DeadlineExceeded: context.DeadlineExceeded,
	} {
		err := fromStatus("f", status.Error(code, "why"))
		if !errors.Is(err, want) || errors.Is(err, ErrTooLarge) || status.Code(err) != code {
			t.Errorf("%v became %v", code, err)
		}
	}
	if _, err := new(Client).Plan(t.Context(), &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{{Nft: strings.Repeat("#", MaxMessage)}}}); !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrLimit) {
		t.Errorf("a message that is too large became %v", err)
	}
	internal := status.Error(codes.Internal, "bug")
	if err := fromStatus("f", internal); !errors.Is(err, internal) {
		t.Errorf("an internal error became %v", err)
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
