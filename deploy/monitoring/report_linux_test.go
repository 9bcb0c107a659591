package monitoring

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/rules"
)

// patience bounds the wait for a report, and for its end: a lasting condition is an Event after
// a minute, and a retry may wait as long.
const patience = 3 * time.Minute

// look is an operator's sources.
type look struct {
	p      *patient
	client *http.Client
	server *server
	alerts map[string]Alert
	// skip is the length of each log before the fault, and known the earlier Events.
	skip  map[string]int
	known map[string]bool
}

func newLook(t *testing.T, p *patient) *look {
	t.Helper()
	addresses := []string{metricsAddress}
	if p.aggregator != nil {
		addresses = append(addresses, aggregatorMetrics)
	}
	l := &look{
		p: p, server: newServer(t, addresses...), alerts: make(map[string]Alert), skip: make(map[string]int), known: make(map[string]bool),
		client: &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}, //nolint:gosec // of the test
	}
	for _, a := range source(t).Alerts {
		l.alerts[a.Alert] = a
	}
	return l
}

// get returns the body for any status.
func (l *look) get(url string) (string, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil) //nolint:noctx // the client has a timeout
	if err != nil {
		return "", err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := l.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// line returns the first line with a word.
func line(text, word string) (string, error) {
	for l := range strings.Lines(text) {
		if strings.Contains(l, word) {
			return strings.TrimSpace(l), nil
		}
	}
	return "", fmt.Errorf("%q is not in\n%s", word, text)
}

// health returns a condition's line with a word, or the error. If another program has the port for
// health, the port for metrics answers the same.
func (l *look) health(word string) (string, error) {
	var all strings.Builder
	for _, address := range []string{healthAddress, metricsAddress, aggregatorHealth} {
		body, err := l.get("http://" + address + "/readyz?verbose")
		if err != nil {
			body = err.Error()
		}
		fmt.Fprintln(&all, body)
	}
	return line(all.String(), word)
}

type event struct {
	Reason, Note string
	Metadata     struct{ Name string }
}

func (l *look) events() ([]event, error) {
	body, err := l.get("https://127.0.0.1:6443/apis/events.k8s.io/v1/events")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []event }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		return nil, fmt.Errorf("%w: %s", err, body)
	}
	return list.Items, nil
}

// event finds an Event since the fault by "REASON WORD", where WORD is in its note.
func (l *look) event(want string) (string, error) {
	list, err := l.events()
	if err != nil {
		return "", err
	}
	reason, word, _ := strings.Cut(want, " ")
	for _, e := range list {
		if e.Reason == reason && strings.Contains(e.Note, word) && !l.known[e.Metadata.Name] {
			return e.Reason + ": " + e.Note, nil
		}
	}
	return "", fmt.Errorf("no Event %s in %v", want, list)
}

// mark marks the current logs and Events as earlier than the fault.
func (l *look) mark(t *testing.T) {
	t.Helper()
	for _, name := range l.p.logs() {
		if info, err := os.Stat(name); err == nil {
			l.skip[name] = int(info.Size())
		}
	}
	list, err := l.events()
	ok(t, err)
	for _, e := range list {
		l.known[e.Metadata.Name] = true
	}
}

// log returns a line of a log since the fault.
func (l *look) log(word string) (string, error) {
	var errs []error
	for _, name := range l.p.logs() {
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue
		}
		found, err := line(string(text[min(l.skip[name], len(text)):]), word)
		if err == nil {
			return found, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// alert evaluates an alert with Prometheus's rule engine on weft's metrics, without the alert's
// duration.
func (l *look) alert(t *testing.T, name string) (string, error) {
	a := l.alerts[name]
	rule, err := ruleOf(&a, 0)
	if err != nil {
		return "", fmt.Errorf("alert %s: %w", name, err)
	}
	if _, err := rule.Eval(t.Context(), 0, time.Now(), rules.EngineQueryFunc(l.server.engine, l.server.storage), nil, 0); err != nil {
		return "", fmt.Errorf("alert %s: %w", name, err)
	}
	if firing(rule) {
		return name, nil
	}
	return "", fmt.Errorf("alert %s: %s has no result", name, a.Expr)
}

// well returns an error while a condition or the alert is reported.
func (l *look) well(t *testing.T, alert string) error {
	for _, address := range l.p.healthAddresses() {
		body, err := l.get("http://" + address + "/readyz?verbose")
		if err != nil {
			return err
		}
		if strings.Contains(body, "[-]") || strings.Contains(body, "[!]") {
			return errors.New(body)
		}
	}
	if v, err := l.server.query(t.Context(), "up == 0"); err != nil || len(v) > 0 {
		return fmt.Errorf("not all metrics are read: %v, %w", v, err)
	}
	if alert == "" {
		return nil
	}
	if _, err := l.alert(t, alert); err == nil {
		return fmt.Errorf("alert %s is raised still", alert)
	}
	return nil
}

func await(t *testing.T, what string, f func() error) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s: %v", what, err)
		}
		<-tick.C
	}
}

// runIncident makes a fault, and writes its reports.
func runIncident(t *testing.T, i *incident) {
	p := newPatient(t, i)
	l := newLook(t, p)
	showLogs(t, p.logs()...)
	p.api.start(t)
	if i.fresh {
		i.seed(t, p)
	}
	if p.aggregator != nil {
		p.aggregator.start(t)
	}
	p.weft.start(t)
	if !i.fresh {
		began := time.Now()
		await(t, "a node that is well", func() error {
			if left := i.uptime - time.Since(began); left > 0 {
				return fmt.Errorf("it is to run for %v more", left)
			}
			return l.well(t, i.alert)
		})
		l.mark(t)
		i.seed(t, p)
	}
	found := make(map[string]string)
	find := func(place, want string, find func(string) (string, error)) {
		if want == "" {
			return
		}
		await(t, place+" "+want, func() (err error) {
			found[place], err = find(want)
			return err
		})
	}
	find("health", i.health, l.health)
	find("alert", i.alert, func(name string) (string, error) { return l.alert(t, name) })
	switch {
	case !i.later:
		find("event", i.event, l.event)
		find("log", i.log, l.log)
	case strings.HasPrefix(i.event, "WeftRecovered"):
		// Without a report there is no report of the end.
		find("log", lasting+"api-server", l.log)
		find("log", i.log, l.log)
	}
	if i.during != nil {
		i.during(t, p)
	}
	began := time.Now()
	i.heal(t, p)
	await(t, "a node that is well again", func() error { return l.well(t, i.alert) })
	again := time.Since(began)
	whole(t, p)
	if i.later {
		find("event", i.event, l.event)
		find("log", i.log, l.log)
		found["event"] += "\x00"
	}
	cells := []string{i.fault}
	for _, place := range []string{"health", "alert", "event", "log"} {
		text := cell(strings.ReplaceAll(strings.TrimSuffix(found[place], "\x00"), p.dir, ""))
		switch {
		case text == "":
			text = "none: " + i.reason
		case strings.HasSuffix(found[place], "\x00"):
			text = "afterwards " + text
		}
		cells = append(cells, text)
	}
	cells = append(cells, fmt.Sprintf("%.0f s", again.Seconds()))
	ok(t, os.WriteFile(os.Getenv("WEFT_MONITORING_REPORT"), []byte("| "+strings.Join(cells, " | ")+" |\n"), 0o600)) //nolint:gosec // of the test
}

// cell returns a line of limited length for a table.
func cell(text string) string {
	const most = 160
	if i := strings.Index(text, " level="); i >= 0 {
		text = text[i+1:] // without the time
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " ..."
	}
	text = strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(text)
	if text == "" || strings.HasPrefix(text, "Weft") && !strings.Contains(text, ":") {
		return text
	}
	return "`" + strings.ReplaceAll(text, "`", "'") + "`"
}
