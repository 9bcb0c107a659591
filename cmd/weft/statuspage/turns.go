package statuspage

import (
	"bytes"
	"net/http"
)

// buffered keeps an answer: a turn must not last until its asker has read it.
type buffered struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (b *buffered) WriteHeader(status int)         { b.status = status }
func (b *buffered) Write(part []byte) (int, error) { return b.body.Write(part) }

// question runs next in a turn, and sends the answer after it.
func (p *Page) question(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		turn, err := p.turns.Enter(p.asker(r))
		if err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		b := &buffered{ResponseWriter: w, status: http.StatusOK}
		err = turn.Rest(r.Context())
		if err == nil {
			turn.Work()
			err = turn.Take(r.Context())
		}
		if err == nil {
			next(b, r)
		}
		turn.Leave()
		if err == nil {
			w.WriteHeader(b.status)
			// An error means that the reader has gone.
			_, _ = w.Write(b.body.Bytes())
		}
	}
}
