package monitoring

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// difference is from the machine's clock.
func (p *patient) setClock(t *testing.T, difference string) {
	t.Helper()
	put(t, p.dir, "clock.new", difference)
	ok(t, os.Rename(filepath.Join(p.dir, "clock.new"), filepath.Join(p.dir, "clock")))
}

func (p *patient) command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t, p.dir, filepath.Join(programs(), "weft"), append(args, "--socket", p.socket)...)
	if err != nil {
		t.Fatalf("weft %v: %v\n%s", args, err, out)
	}
	return out
}

func (p *patient) metric(t *testing.T, name string) (value float64) {
	t.Helper()
	out, err := run(t, "", "curl", "-sSf", "http://"+metricsAddress+"/metrics")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for l := range strings.Lines(out) {
		if _, err := fmt.Sscanf(l, name+" %g", &value); err == nil {
			return value
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// reads counts weft's lists and watches at the API server.
func (p *patient) reads(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(p.api.log)
	ok(t, err)
	n := 0
	for l := range strings.Lines(string(text)) {
		// The test reads events.
		if !strings.HasPrefix(l, "get ") && !strings.HasSuffix(l, " events\n") {
			n++
		}
	}
	return n
}

// jumping sets the clock 5 hours forward, and then 8 hours back.
func jumping(t *testing.T, p *patient) {
	process, reads := p.metric(t, "process_start_time_seconds"), p.reads(t)
	revision := p.metric(t, "weft_revision")
	put(t, p.dir, "unconfirmed.nft", "table inet unconfirmed { set s { type mark; elements = { 1 }; }; }\n")
	p.command(t, "apply", "-f", "unconfirmed.nft", "--confirm", "10m")
	for _, difference := range []string{"5h", "-3h"} {
		p.setClock(t, difference)
		updates(t, p)
		p.publish(t)
		if next := p.metric(t, "weft_revision"); next <= revision {
			t.Errorf("at %s revision %.0f follows %.0f", difference, next, revision)
		} else {
			revision = next
		}
	}
	// The update with 10 minutes to confirm was neither reverted nor forgotten.
	p.command(t, "confirm", "unconfirmed")
	if out := p.command(t, "history"); !strings.Contains(out, "unconfirmed") {
		t.Errorf("the history does not have the last commits:\n%s", out)
	}
	if n := p.reads(t) - reads; n > 0 {
		t.Errorf("the API server was asked for %d more lists and watches", n)
	}
	if now := p.metric(t, "process_start_time_seconds"); now != process {
		t.Errorf("weft has been started again: %.2f, before %.2f", now, process)
	}
	// These would not be published again after a restart.
	p.command(t, "delete", "unconfirmed", "fragment")
	// A restart with an earlier clock continues from the stored revision.
	p.weft.signal(syscall.SIGTERM)
	await(t, "a restart", func() error {
		out, err := run(t, "", "curl", "-sSf", "http://"+healthAddress+"/readyz")
		if err == nil && p.metric(t, "process_start_time_seconds") == process {
			err = errors.New("the process of before runs still: " + out)
		}
		return err
	})
	updates(t, p)
	if next := p.metric(t, "weft_revision"); next <= revision {
		t.Errorf("after a restart with the clock back revision %.0f follows %.0f", next, revision)
	}
}
