package apitest

import (
	"context"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is the fault of one request.
type Fault struct {
	// Status is the status of the answer, with RetryAfter in seconds if that is not 0.
	Status     int
	RetryAfter int
	// Garbage is the body of an answer with status 200.
	Garbage string
	// Hold delays the answer until it is closed.
	Hold <-chan struct{}
	// CutAfter closes the connection after this number of bytes of the answer.
	CutAfter int
	// Event is sent as an error in a watch, instead of objects.
	Event *metav1.Status
}

// Expired is the event of a watch whose version is too old.
func Expired() *metav1.Status {
	return status(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
}

// before applies the faults before the answer, and reports whether they replace it.
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

// limit wraps the writer of an answer that is cut off.
func (f Fault) limit(w http.ResponseWriter) http.ResponseWriter {
	if f.CutAfter == 0 {
		return w
	}
	return &cutWriter{ResponseWriter: w, left: f.CutAfter}
}

// cutWriter closes the connection after a number of bytes.
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
