package statuspage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/cmd/weft/statuspage"
)

// served is a page with its aggregator.
type served struct {
	*httptest.Server
	daemon *aggregatortest.Daemon

	// The results of the checks of the condition "publishers".
	notReady, degraded atomic.Pointer[error]
}

func checkOf(result *atomic.Pointer[error]) func() error {
	return func() error { return *result.Load() }
}

func serve(t *testing.T) *served {
	t.Helper()
	s := &served{}
	s.notReady.Store(new(error))
	s.degraded.Store(new(error))
	monitor, err := conditions.NewMonitor(conditions.Config{Process: "run", Conditions: []conditions.Condition{{Name: conditions.Publishers, NotReady: checkOf(&s.notReady), Degraded: checkOf(&s.degraded)}}, Registerer: prometheus.NewRegistry(), Now: time.Now})
	must(t, err)
	s.daemon = aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{
			Kernel: &aggregatortest.Kernel{}, Findings: true, Rate: 10_000, Burst: 1000, StateDir: t.TempDir(), HistoryEntries: 100, HistoryBytes: 1 << 20,
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = client.ServeTables(ctx, client.Config{Socket: s.daemon.Socket, Publisher: get.AggregatorPublisher}, monitor.Table())
	}()
	t.Cleanup(func() { cancel(); <-done })
	aggregatortest.Eventually(t, "the conditions are registered", func() bool {
		all, err := get.ReadStatus(aggregatortest.Context(t), &cli.Connection{Socket: s.daemon.Socket})
		return err == nil && len(all) == 1
	})
	s.Server = httptest.NewServer(statuspage.New(statuspage.Config{Socket: s.daemon.Socket, Version: "v1"}))
	t.Cleanup(s.Close)
	return s
}

// get returns a page.
func (s *served) get(t *testing.T, path string, change ...func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	must(t, err)
	for _, c := range change {
		c(r)
	}
	answer, err := s.Client().Do(r)
	must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, string(body), answer.Header
}

// hostile has rules with a script in their text, and one that never matches.
const hostile = `table inet t {
	chain c {
		counter drop
		log prefix "<script>alert(1)</script>" accept
	}
}`

// TestOverview: publishers, fragments, findings, rejections and commits, and nothing that a publisher
// has named is a part of the page.
func TestOverview(t *testing.T) {
	s := serve(t)
	c := s.daemon.Dial(t, "tester")
	if _, err := c.Apply(aggregatortest.Context(t), &weftv1.Fragment{Name: "web", Nft: hostile}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Apply(aggregatortest.Context(t), &weftv1.Fragment{Name: "wrong", Nft: `table ip x { chain c { meta mark set "<b>" ; }; }`})
	if err == nil {
		t.Fatal("a wrong fragment is committed")
	}
	var page string
	aggregatortest.Eventually(t, "the finding is shown", func() bool {
		_, page, _ = s.get(t, "/status/")
		return strings.Contains(page, "never-matches")
	})
	for _, want := range []string{
		"This node is ready: revision ", "1 fragments of 1 publishers", "<th scope=\"col\">Publisher</th>", "<td>tester/web</td>", "<td>tester</td>",
		"log prefix \\&#34;&lt;script&gt;alert(1)&lt;/script&gt;\\&#34; accept", "Findings (1)", ": a rule of fragment tester/web ends the chain for every packet, so a later rule of fragment tester/web never matches. Move the later rule", "tester/wrong", "&lt;b&gt;", "<td>+2 -0 rules, 1 tables, 1 chains</td>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, never := range []string{"<script>", "<b>", "onerror", "http://", "https://"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q:\n%s", never, page)
		}
	}
	missing := errors.New("a publisher <i> is missing")
	s.notReady.Store(&missing)
	headline := func(want string) {
		t.Helper()
		aggregatortest.Eventually(t, "the page begins with "+want, func() bool {
			_, page, _ = s.get(t, "/status/")
			return strings.Contains(page, `<h1 class="bad">`+want+`</h1><ul class="bad"><li><p><strong>publishers</strong> of weft run is `) && !strings.Contains(page, `class="good"`)
		})
		for _, text := range []string{"a publisher &lt;i&gt; is missing", "Remedy: Start the publishers that the message names"} {
			if !strings.Contains(page, text) {
				t.Errorf("the page lacks %q:\n%s", text, page)
			}
		}
	}
	headline("This node is not ready.")
	s.notReady.Store(new(error))
	// The page was green once while conditions were degraded.
	s.degraded.Store(&missing)
	headline("This node is degraded.")
}

// TestGuards: methods, hosts, addresses and headers.
func TestGuards(t *testing.T) {
	s := serve(t)
	status, _, h := s.get(t, "/status/")
	if csp := h.Get("Content-Security-Policy"); status != http.StatusOK || !strings.HasPrefix(csp, "default-src 'none'; ") || strings.Contains(csp, "unsafe") {
		t.Errorf("status %d, Content-Security-Policy %q", status, csp)
	}
	if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", h)
	}
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:10249": 200, "127.0.0.1:1": 200, "[::1]:80": 200, "192.0.2.1": 200,
		"attacker.example": 403, "attacker.example:10249": 403, "127.0.0.1.attacker.example": 403, "localhost.attacker.example": 403,
	} {
		if status, _, _ := s.get(t, "/status/", func(r *http.Request) { r.Host = host }); status != want {
			t.Errorf("host %s: status %d, want %d", host, status, want)
		}
	}
	if status, _, _ := s.get(t, "/status/", func(r *http.Request) { r.Method = http.MethodPost }); status != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", status)
	}
	if status, _, _ := s.get(t, "/status/nothing"); status != http.StatusNotFound {
		t.Errorf("an unknown page: status %d", status)
	}
	// Without the address of the connection it is not known whether that is loopback.
	w := httptest.NewRecorder()
	s.Config.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/status/", nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("not on loopback: status %d", w.Code)
	}
	for _, path := range []string{"/status/style.css", "/status/live.js"} {
		if status, body, h := s.get(t, path); status != http.StatusOK || body == "" || !strings.HasPrefix(h.Get("Content-Type"), "text/") {
			t.Errorf("%s: status %d, %s", path, status, h.Get("Content-Type"))
		}
	}
}

// TestForms: what is wrong with a question is in the page, and so is the question.
func TestForms(t *testing.T) {
	s := serve(t)
	for path, want := range map[string]string{
		"/status/explain": `placeholder="shop/web:80, 192.0.2.1:30080"`,
		"/status/explain?from=%22%3E%3Cscript%3E&to=nowhere": `value="&#34;&gt;&lt;script&gt;"`,
		"/status/services":                  "Find",
		"/status/services?name=%3Cb%3E/x/y": "&lt;b&gt;",
	} {
		status, page, _ := s.get(t, path)
		if status != http.StatusOK || !strings.Contains(page, want) || strings.Contains(page, "<script>") || strings.Contains(page, "<b>") {
			t.Errorf("%s: status %d, and no %q:\n%s", path, status, want, page)
		}
	}
}

// TestBounds: readers share a reading, and questions are limited.
func TestBounds(t *testing.T) {
	s := serve(t)
	c := s.daemon.Dial(t, "tester")
	for i := range 300 {
		if _, err := c.Apply(aggregatortest.Context(t), &weftv1.Fragment{Name: fmt.Sprintf("f%d", i), Nft: fmt.Sprintf("table ip t%d { chain c { accept; }; }", i)}); err != nil {
			t.Fatal(err)
		}
	}
	aggregatortest.Eventually(t, "all fragments are counted, and 200 shown", func() bool {
		_, page, _ := s.get(t, "/status/")
		return strings.Contains(page, "300 fragments") && strings.Contains(page, "And 100 more.")
	})
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := make(map[int]int)
	for range 50 {
		wg.Go(func() {
			status, _, _ := s.get(t, "/status/explain?from=x&to=y")
			mu.Lock()
			defer mu.Unlock()
			codes[status]++
		})
	}
	wg.Wait()
	if codes[http.StatusTooManyRequests] == 0 || codes[http.StatusOK] == 0 || codes[http.StatusOK]+codes[http.StatusTooManyRequests] != 50 {
		t.Errorf("50 questions at once: %v", codes)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
