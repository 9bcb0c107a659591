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
)

// look is where an operator looks.
type look struct {
	p      *patient
	client *http.Client
	server *server
	alerts map[string]string
	// skip has how much of each log is from before the fault.
	skip map[string]int
}

func newLook(t *testing.T, p *patient) *look {
	t.Helper()
	addresses := []string{metricsAddress}
	if p.aggregator != nil {
		addresses = append(addresses, aggregatorMetrics)
	}
	l := &look{
		p: p, server: newServer(t, addresses...), alerts: make(map[string]string), skip: make(map[string]int),
		client: &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}, //nolint:gosec // of the test
	}
	for _, a := range source(t).Alerts {
		l.alerts[a.Alert] = a.Expr
	}
	return l
}

// get returns the body of an answer, also of one that is not 200.
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

// line returns the line of a text that has a word.
func line(text, word string) (string, error) {
	for l := range strings.Lines(text) {
		if strings.Contains(l, word) {
			return strings.TrimSpace(l), nil
		}
	}
	return "", fmt.Errorf("%q is not in\n%s", word, text)
}

// health returns the line of a condition that has a word.
func (l *look) health(word string) (string, error) {
	body, err := l.get("http://" + healthAddress + "/readyz?verbose")
	if err != nil {
		return "", err
	}
	return line(body, word)
}

// event returns an Event by "REASON WORD": the word is in its note.
func (l *look) event(want string) (string, error) {
	body, err := l.get("https://127.0.0.1:6443/apis/events.k8s.io/v1/events")
	if err != nil {
		return "", err
	}
	var list struct {
		Items []struct{ Reason, Note string }
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		return "", fmt.Errorf("%w: %s", err, body)
	}
	reason, word, _ := strings.Cut(want, " ")
	for _, e := range list.Items {
		if e.Reason == reason && strings.Contains(e.Note, word) {
			return e.Reason + ": " + e.Note, nil
		}
	}
	return "", fmt.Errorf("no Event %s in %s", want, body)
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

// alert returns the name of an alert whose expression has a result.
func (l *look) alert(t *testing.T, name string) (string, error) {
	v, err := l.server.query(t.Context(), l.alerts[name])
	if err == nil && len(v) == 0 {
		err = fmt.Errorf("alert %s: %s has no result", name, l.alerts[name])
	}
	return name, err
}

// well returns an error while a condition or the alert reports something.
func (l *look) well(t *testing.T, alert string) error {
	body, err := l.get("http://" + healthAddress + "/readyz?verbose")
	if err != nil {
		return err
	}
	if strings.Contains(body, "[-]") || strings.Contains(body, "[!]") {
		return errors.New(body)
	}
	if v, err := l.server.query(t.Context(), "up == 0"); err != nil || len(v) > 0 {
		return fmt.Errorf("not all metrics are read: %v, %w", v, err)
	}
	if alert == "" {
		return nil
	}
	if _, err := l.alert(t, alert); err == nil {
		return fmt.Errorf("alert %s has a result still", alert)
	}
	return nil
}

// await waits until f returns nil.
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

// runIncident makes a fault, and writes what is reported of it.
func runIncident(t *testing.T, i incident) {
	p := newPatient(t, i.split)
	l := newLook(t, p)
	p.api.start(t)
	if i.fresh {
		i.seed(t, p)
	}
	if p.aggregator != nil {
		p.aggregator.start(t)
	}
	p.weft.start(t)
	if !i.fresh {
		await(t, "a node that is well", func() error { return l.well(t, i.alert) })
		for _, name := range p.logs() {
			if info, err := os.Stat(name); err == nil {
				l.skip[name] = int(info.Size())
			}
		}
		i.seed(t, p)
	}
	cells := []string{i.fault}
	for _, place := range []struct {
		name, want string
		find       func(string) (string, error)
	}{
		{"health", i.health, l.health}, {"alert", i.alert, func(name string) (string, error) { return l.alert(t, name) }},
		{"event", i.event, l.event}, {"log", i.log, l.log},
	} {
		found := ""
		if place.want != "" {
			await(t, place.name, func() (err error) {
				found, err = place.find(place.want)
				return err
			})
		}
		cells = append(cells, cell(strings.ReplaceAll(found, p.dir, "")))
	}
	began := time.Now()
	i.heal(t, p)
	await(t, "a node that is well again", func() error { return l.well(t, i.alert) })
	cells = append(cells, fmt.Sprintf("%.0f s", time.Since(began).Seconds()))
	if err := os.WriteFile(os.Getenv("WEFT_MONITORING_REPORT"), []byte("| "+strings.Join(cells, " | ")+" |\n"), 0o600); err != nil { //nolint:gosec // of the test
		t.Fatal(err)
	}
}

// cell returns a text for a cell of a table: one line that is not too long.
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
