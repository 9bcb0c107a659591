package daemon

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/cmd/weft/doctor"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/cmd/weft/statuspage"
)

// sign is what a view shows of a condition that is not ok.
type sign struct{ state, reason, remedy string }

// shown are the conditions that a view shows as not ok. A view that is not green without one has
// "headline".
type shown map[string]sign

// view shows conditions.
type view struct {
	name string
	read func(s *scene) shown
	// node is true if it shows all processes of the node.
	node bool
	// noState and noText are true if it has no state and no reason: a metric.
	noState, noText bool
	// late are conditions that it shows when they are over.
	late string
}

// views are all of them.
var views = []view{
	{name: "readyz", read: (*scene).readyz},
	{name: "get status", read: (*scene).getStatus, node: true},
	{name: "doctor", read: (*scene).doctor, node: true},
	{name: "page", read: (*scene).statusPage, node: true},
	{name: "Event", read: (*scene).event, noState: true, late: "api-server"},
	{name: "log", read: (*scene).logLine},
	{name: "metric", read: (*scene).metric, noState: true, noText: true},
}

// await reads a view until it shows what is wanted, and returns what it showed last.
func (v *view) await(s *scene, want shown) (got shown) {
	s.t.Helper()
	deadline := time.Now().Add(aggregatortest.Wait)
	for {
		got = v.read(s)
		if want.differs(got, v) == "" || time.Now().After(deadline) {
			return got
		}
	}
}

// differs returns how a view shows something else, "" if it does not.
func (want shown) differs(got shown, v *view) string {
	expected := shown{}
	for name, is := range want {
		if v.noState {
			is.state = ""
		}
		if v.noText {
			is.reason, is.remedy = "", ""
		}
		if name != v.late {
			expected[name] = is
		}
	}
	if len(got) == 0 && len(expected) == 0 {
		return ""
	}
	return cmp.Diff(expected, got, cmp.AllowUnexported(sign{}))
}

var (
	readyzLine = regexp.MustCompile(`(?m)^\[([!-])\](\S+) (?:degraded|failed): (.*)\n    remedy: (.*)$`)
	doctorLine = regexp.MustCompile(`(?m)^error: conditions: weft \w+: (\S+) is (degraded|not ready): (.*)\n    .*\n    (.*)\.$`)
	doctorHead = regexp.MustCompile(`(?m)\A(?:weft .*: ok\n)*weft .*: (degraded|not ready): .*$`)
	pageLine   = regexp.MustCompile(`<li><p><strong>([^<]+)</strong> of weft \w+ is (degraded|not ready): ([^<]*)</p><p>Remedy: ([^<]*)\.</p></li>`)
	pageHead   = regexp.MustCompile(`<main id="live"><h1 class="(good|bad)">This node is (ready|degraded|not ready)[.:]`)
	eventLine  = regexp.MustCompile(`^Warning WeftDegraded (\S+): (.*?)\. Remedy: (.*)\.$`)
	logText    = regexp.MustCompile(`level=WARN msg="weft is (degraded|not ready)" condition=(\S+) since=\S+ reason=(".*"|\S+) remedy=(".*"|\S+)`)
	metricLine = regexp.MustCompile(`(?m)^weft_degraded\{condition="(.*)"\} 1$`)
)

// readyz reads /readyz?verbose, and compares /readyz with it.
func (s *scene) readyz() shown {
	servers := httpServers{healthy: func() error { return nil }, monitor: s.monitor}
	code, body, _ := page(servers.healthHandler(), "/readyz?verbose")
	out := shown{}
	for _, m := range readyzLine.FindAllStringSubmatch(body, -1) {
		out[m[2]] = sign{map[string]string{"!": "degraded", "-": "not ready"}[m[1]], m[3], m[4]}
	}
	last := "passed\n"
	for _, is := range out {
		switch is.state {
		case "not ready":
			last = "failed\n"
		case "degraded":
			last = "passed: degraded\n"
		}
	}
	plainCode, plainBody, _ := page(servers.healthHandler(), "/readyz")
	if plainCode != code || code == http.StatusOK == strings.HasSuffix(body, "failed\n") || !strings.HasSuffix(body, "readyz check "+last) || strings.Contains(plainBody, `"conditions"`) != (len(out) > 0) {
		out["headline"] = sign{state: fmt.Sprint(code, plainCode), reason: body, remedy: plainBody}
	}
	return out
}

// run runs a verb and returns what it prints.
func (s *scene) run(cmd *cobra.Command, args ...string) string {
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--socket", s.running.Socket))
	// Its exit code is 1 if something is wrong.
	_ = cmd.ExecuteContext(s.t.Context())
	return out.String()
}

// getStatus reads the table of weft get status.
func (s *scene) getStatus() shown {
	out := shown{}
	text := s.run(get.New(), "status")
	for line := range strings.Lines(text) {
		cells := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
		if cells[0] == "PROCESS" || len(cells) < 3 || cells[2] == "ok" && len(cells) == 4 {
			continue
		}
		if len(cells) != 6 {
			out["headline"] = sign{reason: line}
			continue
		}
		out[cells[1]] = sign{cells[2], cells[4], cells[5]}
	}
	if !strings.Contains(text, " ok ") {
		out["headline"] = sign{reason: text}
	}
	return out
}

// doctor reads the first lines of weft doctor. What it finds on the host that runs the test is not compared.
func (s *scene) doctor() shown {
	out := shown{}
	text := s.run(doctor.New(), "--state-dir", s.root, "--healthz-address", "127.0.0.1:1", "--metrics-address", "127.0.0.1:1")
	for _, m := range doctorLine.FindAllStringSubmatch(text, -1) {
		out[m[1]] = sign{m[2], m[3], m[4]}
	}
	if !strings.HasPrefix(text, "weft run v1: ") || doctorHead.MatchString(text) != (len(out) > 0) {
		out["headline"] = sign{reason: text}
	}
	return out
}

// statusPage reads the headline of the status page, and the list below it.
func (s *scene) statusPage() shown {
	out := shown{}
	answer, err := http.Get(s.page.URL + statuspage.Root)
	must(s.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(s.t, err)
	worst := "ready"
	for _, m := range pageLine.FindAllStringSubmatch(string(text), -1) {
		worst = m[2]
		out[m[1]] = sign{m[2], html.UnescapeString(m[3]), html.UnescapeString(m[4])}
	}
	if head := pageHead.FindStringSubmatch(string(text)); head == nil || head[2] != worst || (head[1] == "good") != (worst == "ready") {
		out["headline"] = sign{state: worst, reason: string(text)}
	}
	return out
}

// report has the monitor report what has lasted, as after an hour.
func (s *scene) report() {
	s.monitor.Report()
	s.now = s.now.Add(time.Hour)
	s.monitor.Report()
}

// event reads the events of the Node that are not over.
func (s *scene) event() shown {
	s.report()
	out := shown{}
	for _, e := range s.events {
		if m := eventLine.FindStringSubmatch(e); m != nil {
			out[m[1]] = sign{reason: m[2], remedy: m[3]}
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(e, "Normal WeftRecovered "), ":")
		if _, ok := out[name]; !ok && name != "api-server" {
			out["headline"] = sign{reason: e}
		}
		delete(out, name)
	}
	return out
}

// logLine reads the lines of the log about conditions that are not over.
func (s *scene) logLine() shown {
	s.report()
	out := shown{}
	for line := range strings.Lines(s.logged.String()) {
		if m := logText.FindStringSubmatch(line); m != nil {
			out[m[2]] = sign{m[1], unquote(m[3]), unquote(m[4])}
		} else if _, after, ok := strings.Cut(line, `msg="weft has recovered" condition=`); ok {
			delete(out, strings.Fields(after)[0])
		}
	}
	return out
}

// unquote returns a value of a line of the log.
func unquote(text string) string {
	return strings.ReplaceAll(strings.Trim(text, `"`), `\"`, `"`)
}

// scrape returns the metrics about conditions.
func (s *scene) scrape() string {
	servers := httpServers{healthy: func() error { return nil }, monitor: s.monitor}
	_, body, _ := page(servers.metricsHandler(s.registry), "/metrics")
	var out strings.Builder
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "weft_") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// metric reads weft_degraded, and compares weft_ready with /readyz.
func (s *scene) metric() shown {
	out := shown{}
	text := s.scrape()
	for _, m := range metricLine.FindAllStringSubmatch(text, -1) {
		out[m[1]] = sign{}
	}
	servers := httpServers{healthy: func() error { return nil }, monitor: s.monitor}
	code, _, _ := page(servers.healthHandler(), "/readyz")
	if ready := strings.Contains(text, "\nweft_ready 1\n"); ready != (code == http.StatusOK) {
		out["headline"] = sign{reason: text}
	}
	return out
}
