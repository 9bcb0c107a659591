package specs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Line is a line of specs.jsonl.
type Line struct {
	Name string `json:"name"`
	// State is ginkgo's: passed, failed, skipped, timedout, interrupted, panicked, aborted or pending.
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
	Process int     `json:"process"`
	// the failure, or the reason of a skip
	Message string `json:"message,omitempty"`
}

type progress struct {
	out   io.Writer
	start time.Time
	rest  []byte

	total, ended, failed int
}

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
