package conditions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/weft-proxy/weft/cmd/weft/conditions/conditionspb"
)

// Readyz answers /readyz: 200, or 503 if a condition is not ready, and why as JSON. With
// ?verbose it has a line for each condition, as the API server's has for each check: [+] ok, [!]
// degraded, [-] not ready; the remedy is in the line below.
func (m *Monitor) Readyz(w http.ResponseWriter, r *http.Request) {
	p := m.Look()
	if !r.URL.Query().Has("verbose") {
		writeAnswer(w, p.notReady(), p.Wrong())
		return
	}
	var lines strings.Builder
	for _, s := range p.Conditions {
		switch s.State {
		case OK:
			fmt.Fprintf(&lines, "[+]%s ok\n", s.Name)
		case Degraded:
			fmt.Fprintf(&lines, "[!]%s degraded: %s\n    remedy: %s\n", s.Name, s.Message, s.Remedy)
		case NotReady:
			fmt.Fprintf(&lines, "[-]%s failed: %s\n    remedy: %s\n", s.Name, s.Message, s.Remedy)
		}
	}
	status, last := http.StatusOK, "passed"
	switch p.State() {
	case NotReady:
		status, last = http.StatusServiceUnavailable, "failed"
	case Degraded:
		last = "passed: degraded"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// An error means that the reader has gone.
	_, _ = fmt.Fprintf(w, "%sreadyz check %s\n", lines.String(), last)
}

// notReady returns the messages of all conditions that are not ready, nil if there are none.
func (p *Process) notReady() error {
	var messages []string
	for _, s := range p.Conditions {
		if s.State == NotReady {
			messages = append(messages, s.Message)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return errors.New(strings.Join(messages, "; "))
}

// Answer writes the answer of a health check: 200, or 503 with the reason, as JSON.
func Answer(w http.ResponseWriter, err error) { writeAnswer(w, err, nil) }

// writeAnswer is Answer with the conditions that are not OK.
func writeAnswer(w http.ResponseWriter, err error, wrong []Status) {
	body := struct {
		Time       time.Time `json:"currentTime"`
		Healthy    bool      `json:"healthy"`
		Reason     string    `json:"reason,omitempty"`
		Conditions []Status  `json:"conditions,omitempty"`
	}{Time: time.Now().UTC(), Healthy: true, Conditions: wrong}
	status := http.StatusOK
	if err != nil {
		body.Healthy, body.Reason, status = false, strings.TrimSpace(err.Error()), http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// An error means that the reader has gone.
	_ = json.NewEncoder(w).Encode(body)
}

// server offers the conditions to readers of the socket.
type server struct {
	conditionspb.UnimplementedConditionsServer
	monitor *Monitor
}

// Register registers the service Conditions.
func (m *Monitor) Register(r grpc.ServiceRegistrar) {
	conditionspb.RegisterConditionsServer(r, server{monitor: m})
}

// ListConditions implements conditionspb.ConditionsServer.
func (s server) ListConditions(context.Context, *conditionspb.ListConditionsRequest) (*conditionspb.ListConditionsResponse, error) {
	return s.monitor.Look().proto(), nil
}
