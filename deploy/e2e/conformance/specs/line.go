package specs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Line is what specs.jsonl has of a spec.
type Line struct {
	Name string `json:"name"`
	// State is ginkgo's: passed, failed, skipped, timedout, interrupted, panicked, aborted or pending.
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
	// Process is the number of ginkgo's process.
	Process int `json:"process"`
	// Message is the failure's, or why the spec skipped itself.
	Message string `json:"message,omitempty"`
}

// progress prints the lines of specs.jsonl as they come.
type progress struct {
	out   io.Writer
	start time.Time
	rest  []byte

	total, ended, failed int
}

// write reads JSON lines, of which the last one may be in two parts.
func (p *progress) write(b []byte) {
	p.rest = append(p.rest, b...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			return
		}
		p.rest = rest
		var l Line
		if err := json.Unmarshal(line, &l); err != nil {
			fmt.Fprintf(p.out, "specs.jsonl: %v\n", err)
			continue
		}
		p.print(l)
	}
}

func (p *progress) print(l Line) {
	p.ended++
	message := ""
	if l.State != "passed" {
		message, _, _ = strings.Cut(strings.TrimSpace(l.Message), "\n")
		message = "\n        " + message
	}
	if l.State != "passed" && l.State != "skipped" {
		p.failed++
	}
	fmt.Fprintf(p.out, "%6s %3d of %d, %d failed  %-7s %6.1fs  %s%s\n", time.Since(p.start).Round(time.Second),
		p.ended, p.total, p.failed, l.State, l.Seconds, strings.TrimPrefix(l.Name, prefix), message)
}
