package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

var (
	// ErrUnavailable means that no aggregator answers, or that it is on standby or stopping. Retry
	// later.
	ErrUnavailable = errors.New("aggregator unavailable")
	// ErrPermission means a missing right for a call or an update (a *RejectedError with
	// REASON_PERMISSION).
	ErrPermission = errors.New("permission denied")
	// ErrLimit means an exceeded limit of the publisher, a call or an update (a *RejectedError with
	// REASON_LIMIT).
	ErrLimit = errors.New("limit exceeded")
	// ErrTooLarge means that a request exceeds one message.
	ErrTooLarge = fmt.Errorf("%w: request too large", ErrLimit)
	// ErrNotFound means that there is no such fragment, table or object.
	ErrNotFound = errors.New("not found")
	// ErrNotServed means that no process serves a table.
	ErrNotServed = errors.New("table not served")
	// ErrInvalid means a malformed request, such as a name, or a fragment that cannot be encoded.
	ErrInvalid = errors.New("invalid request")
	// ErrTakenOver means that another stream of the publisher has the fragment (a *RejectedError
	// with REASON_TAKEN_OVER).
	ErrTakenOver = errors.New("fragment taken over")
	// ErrClosed means a closed client or session.
	ErrClosed = errors.New("client closed")
	// ErrNoSnapshot means that the session lacks the content of a fragment to send or patch.
	ErrNoSnapshot = errors.New("no snapshot of the fragment")
)

// RejectedError is the aggregator's rejection of an update. The fragment keeps its last committed
// content. errors.Is matches ErrPermission, ErrLimit or ErrTakenOver if a violation has that
// reason.
type RejectedError struct {
	Fragment string
	// at least one, in the order of the request
	Violations []*weftv1.Violation
}

// Error returns the first violation and the number of others, in one line.
func (e *RejectedError) Error() string {
	s := "fragment " + e.Fragment + " rejected"
	if len(e.Violations) == 0 {
		return s
	}
	s += ": " + line(e.Violations[0])
	if n := len(e.Violations) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// Format formats %+v as Detail, others as Error.
func (e *RejectedError) Format(f fmt.State, verb rune) {
	text := e.Error()
	if verb == 'v' && f.Flag('+') {
		text = e.Detail()
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), text)
}

// Detail returns a line for every violation, with its excerpt, and without a final newline.
func (e *RejectedError) Detail() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fragment %s rejected:", e.Fragment)
	for _, v := range e.Violations {
		b.WriteString("\n  " + line(v))
		for l := range strings.Lines(v.GetExcerpt()) {
			b.WriteString("\n    " + strings.TrimRight(l, "\n"))
		}
	}
	return b.String()
}

// Has reports whether a violation has this reason.
func (e *RejectedError) Has(reason weftv1.Violation_Reason) bool {
	return slices.ContainsFunc(e.Violations, func(v *weftv1.Violation) bool { return v.GetReason() == reason })
}

// Is implements the match of errors.Is.
func (e *RejectedError) Is(target error) bool {
	switch target {
	case ErrPermission:
		return e.Has(weftv1.Violation_REASON_PERMISSION)
	case ErrLimit:
		return e.Has(weftv1.Violation_REASON_LIMIT)
	case ErrTakenOver:
		return e.Has(weftv1.Violation_REASON_TAKEN_OVER)
	default:
		return false
	}
}

// passing reports whether the rejection can go away without a change by the publisher.
func (e *RejectedError) passing() bool {
	reasons := []weftv1.Violation_Reason{
		weftv1.Violation_REASON_CONFLICT, weftv1.Violation_REASON_REFERENCE, weftv1.Violation_REASON_KERNEL,
		weftv1.Violation_REASON_PERMISSION, weftv1.Violation_REASON_LIMIT, weftv1.Violation_REASON_UNCONFIRMED,
	}
	lasting := func(v *weftv1.Violation) bool { return !slices.Contains(reasons, v.GetReason()) }
	return len(e.Violations) > 0 && !slices.ContainsFunc(e.Violations, lasting)
}

func line(v *weftv1.Violation) string {
	s := v.GetMessage()
	if v.GetLine() > 0 {
		s = fmt.Sprintf("%d:%d: %s", v.GetLine(), v.GetColumn(), s)
	}
	if v.GetObject() != nil {
		s = v.GetObject().Text() + ": " + s
	}
	return s
}

type rpcError struct {
	sentinel error
	st       *status.Status
}

func (e *rpcError) Error() string { return e.sentinel.Error() + ": " + e.st.Message() }
func (e *rpcError) Unwrap() error { return e.sentinel }

// GRPCStatus makes the original visible to status.FromError.
func (e *rpcError) GRPCStatus() *status.Status { return e.st }

// fromStatus leaves an error without a sentinel, such as an internal one, unchanged.
func fromStatus(fragment string, err error) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range st.Details() {
		if r, ok := d.(*weftv1.Rejected); ok {
			return &RejectedError{Fragment: fragment, Violations: r.GetViolations()}
		}
	}
	if sentinel := sentinels[st.Code()]; sentinel != nil {
		return &rpcError{sentinel, st}
	}
	return err
}

// checkSize returns ErrTooLarge above MaxMessage; gRPC would end the stream without details.
func checkSize(n int) error {
	if n > MaxMessage {
		return fmt.Errorf("%w: %d bytes that cannot be divided, of at most %d: make several fragments of it, or several chains", ErrTooLarge, n, MaxMessage)
	}
	return nil
}

var sentinels = map[codes.Code]error{
	codes.Unavailable:        ErrUnavailable,
	codes.PermissionDenied:   ErrPermission,
	codes.Unauthenticated:    ErrPermission,
	codes.NotFound:           ErrNotFound,
	codes.InvalidArgument:    ErrInvalid,
	codes.FailedPrecondition: ErrNotServed,
	codes.ResourceExhausted:  ErrLimit,
	codes.Unimplemented:      errors.ErrUnsupported,
	codes.Canceled:           context.Canceled,
	codes.DeadlineExceeded:   context.DeadlineExceeded,
}
