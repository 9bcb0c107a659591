package report

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

type cell struct {
	passed, failed, skipped int
	seconds                 []float64
	message                 string
}

func (c *cell) add(s Spec) {
	switch s.State {
	case Passed:
		c.passed++
		c.seconds = append(c.seconds, s.Seconds)
	case Skipped:
		c.skipped++
		c.message = s.Message
	default:
		c.failed++
		c.message = s.Message
	}
}

// String returns passed, failed or skipped if all runs agree, otherwise the number of passes.
func (c *cell) String() string {
	all := c.passed + c.failed + c.skipped
	switch all {
	case 0:
		return ""
	case c.passed:
		return string(Passed)
	case c.failed:
		return "**failed**"
	case c.skipped:
		return string(Skipped)
	default:
		return fmt.Sprintf("**passed %d of %d**", c.passed, all)
	}
}

// median is in seconds, over the passed runs; empty without passed runs.
func (c *cell) median() string {
	if len(c.seconds) == 0 {
		return ""
	}
	s := slices.Sorted(slices.Values(c.seconds))
	return strconv.FormatFloat(s[(len(s)-1)/2], 'f', 1, 64)
}

var flake = regexp.MustCompile(`^\*\*passed \d+ of \d+\*\*$`)

type count struct{ passed, run int }

func (c count) String() string {
	if c.run == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", c.passed, c.run)
}

// A spec that skipped itself does not count.
func (c *count) add(cell string) {
	if cell == "" || cell == string(Skipped) {
		return
	}
	c.run++
	if cell == string(Passed) {
		c.passed++
	}
}
