package conditions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/cmd/weft/conditions/conditionspb"
)

// Readyz answers /readyz: 200 or 503, and why as JSON. With ?verbose it has a line for each
// condition, as the API server's has for each check: [+] ok, [!] degraded, [-] not ready.
func (m *Monitor) Readyz(w http.ResponseWriter, r *http.Request) {
	if !r.URL.Query().Has("verbose") {
		Answer(w, m.Ready())
		return
	}
	status, lines, last := http.StatusOK, strings.Builder{}, "passed"
	for _, s := range m.List() {
		switch s.State {
		case OK:
			fmt.Fprintf(&lines, "[+]%s ok\n", s.Name)
		case Degraded:
			fmt.Fprintf(&lines, "[!]%s degraded: %s\n", s.Name, s.Message)
		case NotReady:
			fmt.Fprintf(&lines, "[-]%s failed: %s\n", s.Name, s.Message)
			status, last = http.StatusServiceUnavailable, "failed"
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// An error means that the reader has gone.
	_, _ = fmt.Fprintf(w, "%sreadyz check %s\n", lines.String(), last)
}

// Answer writes the answer of a health check: 200, or 503 with the reason, as JSON.
func Answer(w http.ResponseWriter, err error) {
	body := struct {
		Time    time.Time `json:"currentTime"`
		Healthy bool      `json:"healthy"`
		Reason  string    `json:"reason,omitempty"`
	}{Time: time.Now().UTC(), Healthy: true}
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
	out := &conditionspb.ListConditionsResponse{Process: s.monitor.cfg.Process, Version: s.monitor.cfg.Version}
	for _, c := range s.monitor.List() {
		out.Conditions = append(out.Conditions, &conditionspb.Condition{Name: c.Name, State: c.State.proto(), Message: c.Message, Since: timestamppb.New(c.Since)})
	}
	return out, nil
}
