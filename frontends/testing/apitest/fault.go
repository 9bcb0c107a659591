package apitest

import (
	"context"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fault is the fault of a request.
type Fault struct {
	Status int
	// in seconds
	RetryAfter int
	// body with status 200
	Garbage string
	// delays the answer until closed
	Hold <-chan struct{}
	// closes the connection after so many bytes
	CutAfter int
	// as a watch error
	Event *metav1.Status
}

// Expired is the event of a watch with an old version.
func Expired() *metav1.Status {
	return &apierrors.NewResourceExpired("too old resource version").ErrStatus
}

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
		enc.object(w, f.Status, statusOf(f.Status, f.RetryAfter))
		return true
	case f.Garbage != "":
		w.Header().Set("Content-Type", enc.info.MediaType)
		_, _ = w.Write([]byte(f.Garbage))
		return true
	}
	return false
}

func statusOf(code, retryAfter int) *metav1.Status {
	if code == http.StatusGone {
		return Expired()
	}
	s := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", http.StatusText(code), retryAfter, false).Status()
	return &s
}

func (f Fault) limit(w http.ResponseWriter) http.ResponseWriter {
	if f.CutAfter == 0 {
		return w
	}
	return &cutWriter{ResponseWriter: w, left: f.CutAfter}
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) < c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func (c *cutWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
