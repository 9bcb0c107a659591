package conditions

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/weft-proxy/weft/aggregator/client"
)

// Readyz answers /readyz: 200, or 503 with the reason as JSON. ?verbose adds a line for each
// condition: [+] ok, [!] degraded, [-] not ready, with the remedy.
func (m *Monitor) Readyz(w http.ResponseWriter, r *http.Request) {
	p := m.Look()
	if !r.URL.Query().Has("verbose") {
		Answer(w, p.Ready(), p.Wrong()...)
		return
	}
	var lines strings.Builder
	for _, s := range p.Conditions {
		fmt.Fprintf(&lines, "[%c]%s %s", "+!-"[s.State], s.Name, [...]string{OK: "ok\n", Degraded: "degraded: ", NotReady: "failed: "}[s.State])
		if s.State != OK {
			fmt.Fprintf(&lines, "%s\n    remedy: %s\n", s.Message, s.Remedy)
		}
	}
	status, last := http.StatusOK, [...]string{OK: "passed", Degraded: "passed: degraded", NotReady: "failed"}[p.State()]
	if p.State() == NotReady {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "%sreadyz check %s\n", lines.String(), last)
}

// Answer answers a health check with JSON: 200, or 503 with the reason.
func Answer(w http.ResponseWriter, err error, wrong ...Status) {
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
	_ = json.NewEncoder(w).Encode(body)
}

// TableName names the table of a process's conditions.
const TableName = "conditions"

// Table returns the table, with one row: a *Process.
func (m *Monitor) Table() client.Table {
	return client.Table{Name: TableName, Rows: func(map[string]string) (iter.Seq[any], error) {
		return func(yield func(any) bool) { yield(m.Look()) }, nil
	}}
}
