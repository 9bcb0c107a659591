package client

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

var (
	// ErrUnavailable means that no aggregator answers on the socket, or that it
	// can not commit: it stands by or is stopping. Try again later.
	ErrUnavailable = errors.New("aggregator unavailable")
	// ErrPermission means that the aggregator does not let this peer do that.
	ErrPermission = errors.New("permission denied")
	// ErrNotFound means that there is no such fragment.
	ErrNotFound = errors.New("no such fragment")
	// ErrTooLarge means that a request exceeds what one message may hold.
	ErrTooLarge = errors.New("request too large")
	// ErrClosed means that the client or session was closed.
	ErrClosed = errors.New("client closed")
	// ErrNoSnapshot means that a session needs a fragment's whole content and
	// SessionConfig.Snapshot has none.
	ErrNoSnapshot = errors.New("no snapshot of the fragment")
)

// RejectedError is the aggregator's refusal of an update. The fragment stays at
// its last committed content.
type RejectedError struct {
	// Fragment is the name of the fragment.
	Fragment string
	// Violations has at least one entry, in the order of the request.
	Violations []*weftv1.Violation
}

// Error returns one line: the first violation, and how many more there are.
func (e *RejectedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fragment %s rejected", e.Fragment)
	if len(e.Violations) == 0 {
		return b.String()
	}
	b.WriteString(": ")
	b.WriteString(line(e.Violations[0]))
	switch n := len(e.Violations) - 1; n {
	case 0:
	case 1:
		b.WriteString(" (and 1 more)")
	default:
		fmt.Fprintf(&b, " (and %d more)", n)
	}
	return b.String()
}

// Format implements fmt.Formatter: %+v is Detail, everything else Error.
func (e *RejectedError) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('+'):
		fmt.Fprint(f, e.Detail())
	case verb == 'q':
		fmt.Fprintf(f, "%q", e.Error())
	default:
		fmt.Fprint(f, e.Error())
	}
}

// Detail returns every violation on a line of its own, each followed by the
// offending line of text with a caret under the token where there is one. It
// does not end in a newline.
func (e *RejectedError) Detail() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fragment %s rejected:", e.Fragment)
	for _, v := range e.Violations {
		b.WriteString("\n  ")
		b.WriteString(line(v))
		if v.GetExcerpt() == "" {
			continue
		}
		for l := range strings.Lines(v.GetExcerpt()) {
			b.WriteString("\n    ")
			b.WriteString(strings.TrimRight(l, "\n"))
		}
	}
	return b.String()
}

// Has reports whether a violation has this reason.
func (e *RejectedError) Has(reason weftv1.Reason) bool {
	for _, v := range e.Violations {
		if v.GetReason() == reason {
			return true
		}
	}
	return false
}

// line formats a violation as "object: line:column: message".
func line(v *weftv1.Violation) string {
	var b strings.Builder
	if v.GetObject() != "" {
		b.WriteString(v.GetObject())
		b.WriteString(": ")
	}
	if v.GetLine() > 0 {
		fmt.Fprintf(&b, "%d:%d: ", v.GetLine(), v.GetColumn())
	}
	b.WriteString(v.GetMessage())
	return b.String()
}

// rpcError is a gRPC status with the sentinel that it stands for.
type rpcError struct {
	sentinel error
	st       *status.Status
}

func (e *rpcError) Error() string { return e.sentinel.Error() + ": " + e.st.Message() }
func (e *rpcError) Unwrap() error { return e.sentinel }

// GRPCStatus lets status.FromError see the original.
func (e *rpcError) GRPCStatus() *status.Status { return e.st }

// fromStatus turns the error of a call into one of this package. Errors that
// are none of the aggregator's (a cancelled context) come back as they are.
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
	switch st.Code() {
	case codes.Unavailable:
		return &rpcError{ErrUnavailable, st}
	case codes.PermissionDenied, codes.Unauthenticated:
		return &rpcError{ErrPermission, st}
	case codes.NotFound:
		return &rpcError{ErrNotFound, st}
	case codes.ResourceExhausted:
		return &rpcError{ErrTooLarge, st}
	default:
		return err
	}
}
