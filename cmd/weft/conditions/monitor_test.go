package conditions

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// scene is a monitor with two conditions whose results and clock a test sets.
type scene struct {
	*Monitor
	api, services, slow error
	now                 time.Time
	events              []string
	log                 bytes.Buffer
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{now: time.Unix(1_000_000, 0)}
	var err error
	s.Monitor, err = NewMonitor(Config{
		Process: "run", Version: "v1", Now: func() time.Time { return s.now }, Registerer: prometheus.NewRegistry(),
		Conditions: []Condition{
			{Name: "api-server", Degraded: func() error { return s.api }},
			{Name: "services", NotReady: func() error { return s.services }, Degraded: func() error { return s.slow }},
		},
		Event:  func(kind, reason, _, message string) { s.events = append(s.events, kind+" "+reason+" "+message) },
		Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	must(t, err)
	return s
}

// TestReports reports what lasts, once, and its end. Of what is short nothing is said.
func TestReports(t *testing.T) {
	s := newScene(t)
	s.Report()
	s.services = errors.New("refused")
	s.Report()
	s.now = s.now.Add(hold / 2)
	s.services = nil
	s.Report()
	if len(s.events) > 0 || s.log.Len() > 0 {
		t.Fatalf("a short error was reported: %q, %s", s.events, &s.log)
	}
	s.services, s.api = errors.New("refused"), errors.New("timeout")
	s.Report()
	s.now = s.now.Add(2 * hold)
	// A condition that changes from degraded to not ready is still the same.
	s.services, s.slow = nil, errors.New("refused")
	s.Report()
	s.Report()
	want := []string{"Warning WeftDegraded services: refused. Remedy: " + KindOf("services").Remedy + "."}
	if diff := cmp.Diff(want, s.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := s.log.String(); strings.Count(got, "level=WARN") != 2 || !strings.Contains(got, "condition=api-server") || !strings.Contains(got, "reason=refused") {
		t.Errorf("log:\n%s", got)
	}
	s.slow, s.api = nil, nil
	s.Report()
	s.now = s.now.Add(hold)
	s.Report()
	s.Report()
	// That the API server did not answer is said when it does again.
	want = append(want, "Normal WeftRecovered api-server: ok again after 1m0s: timeout", "Normal WeftRecovered services: ok again after 1m0s: refused")
	if diff := cmp.Diff(want, s.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestTable has the states as readers decode them, and since when they are.
func TestTable(t *testing.T) {
	s := newScene(t)
	s.Look()
	began := s.now
	s.now = s.now.Add(time.Minute)
	s.services = errors.New("refused")
	rows, err := s.Table().Rows(nil)
	must(t, err)
	var got Process
	for row := range rows {
		text, err := json.Marshal(row)
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		must(t, err)
	}
	if got.Process != "run" || got.Version != "v1" || len(got.Conditions) != 2 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []Status{{"api-server", OK, began, "", ""}, {"services", NotReady, s.now, "refused", KindOf("services").Remedy}} {
		have := got.Conditions[i]
		if !have.Since.Equal(want.Since) {
			t.Errorf("%s since %v, want %v", want.Name, have.Since, want.Since)
		}
		have.Since, want.Since = time.Time{}, time.Time{}
		if have != want {
			t.Errorf("%+v, want %+v", have, want)
		}
	}
}

// TestUnknownKind: a condition without a remedy is refused.
func TestUnknownKind(t *testing.T) {
	if _, err := NewMonitor(Config{Conditions: []Condition{{Name: "mood"}}}); err == nil || !strings.Contains(err.Error(), `condition "mood"`) {
		t.Errorf("a condition that is not in Kinds: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
