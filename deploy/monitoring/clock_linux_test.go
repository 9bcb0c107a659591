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

// setClock sets the wall clock of weft, as the difference from the machine's.
func (p *patient) setClock(t *testing.T, difference string) {
	t.Helper()
	put(t, p.dir, "clock.new", difference)
	if err := os.Rename(filepath.Join(p.dir, "clock.new"), filepath.Join(p.dir, "clock")); err != nil {
		t.Fatal(err)
	}
}

// command runs a command of weft.
func (p *patient) command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t, p.dir, filepath.Join(programs(), "weft"), append(args, "--socket", p.socket)...)
	if err != nil {
		t.Fatalf("weft %v: %v\n%s", args, err, out)
	}
	return out
}

// metric returns a metric of weft.
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

// reads counts the lists and watches of weft that the API server has been asked for.
func (p *patient) reads(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(p.api.log)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for l := range strings.Lines(string(text)) {
		// Events are what the test reads.
		if !strings.HasPrefix(l, "get ") && !strings.HasSuffix(l, " events\n") {
			n++
		}
	}
	return n
}

// jumping is what must hold after the clock was set to 5 hours later, and 8 hours back then.
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
	// What was to be confirmed within 10 minutes has neither been taken back nor forgotten.
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
	// No program would publish these again after a restart.
	p.command(t, "delete", "unconfirmed", "fragment")
	// A restart with the clock back counts on from the revision that is stored.
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
