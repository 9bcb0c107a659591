package apitest

import (
	"context"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is what goes wrong with one request.
type Fault struct {
	// Status is answered in place of what was asked for, with RetryAfter in
	// seconds if that is not 0.
	Status     int
	RetryAfter int
	// Garbage is answered as if it was good.
	Garbage string
	// Hold delays the answer until it is closed.
	Hold <-chan struct{}
	// CutAfter closes the connection after so many bytes of the answer.
	CutAfter int
	// Event is sent in a watch as an error, in place of what was asked for.
	Event *metav1.Status
}

// Expired is the event that says that a watch's version is too old.
func Expired() *metav1.Status {
	return status(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
}

// before does what comes before the answer, and reports whether that is all.
func (f Fault) before(ctx context.Context, w http.ResponseWriter, enc encoder) bool {
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-ctx.Done():
			return true
		}
	}
	switch {
	case f.Status != 0:
		if f.RetryAfter != 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		enc.object(w, f.Status, status(int32(f.Status), reason(f.Status), "as the test wants it")) //nolint:gosec // an HTTP status
		return true
	case f.Garbage != "":
		w.Header().Set("Content-Type", enc.info.MediaType)
		_, _ = w.Write([]byte(f.Garbage))
		return true
	}
	return false
}

func reason(code int) metav1.StatusReason {
	switch code {
	case http.StatusUnauthorized:
		return metav1.StatusReasonUnauthorized
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	case http.StatusMethodNotAllowed:
		return metav1.StatusReasonMethodNotAllowed
	case http.StatusGone:
		return metav1.StatusReasonExpired
	case http.StatusUnprocessableEntity:
		return metav1.StatusReasonInvalid
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	default:
		return metav1.StatusReasonInternalError
	}
}

// limit wraps an answer that is cut.
func (f Fault) limit(w http.ResponseWriter) http.ResponseWriter {
	if f.CutAfter == 0 {
		return w
	}
	return &cutWriter{ResponseWriter: w, left: f.CutAfter}
}

// cutWriter closes the connection in the middle of what it writes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

// Write implements http.ResponseWriter.
func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) < c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	c.Flush()
	panic(http.ErrAbortHandler)
}

// Flush implements http.Flusher.
func (c *cutWriter) Flush() { flush(c.ResponseWriter) }
