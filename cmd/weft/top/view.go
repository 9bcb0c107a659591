package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/nft/printable"
)

type line struct {
	text  string
	title bool
}

// section is a table, or the reason for its absence.
type section struct {
	rows *get.Rows
	none string
}

// view returns at most height lines, unless height is 0 or too low for the titles.
func view(socket string, before, after *sample, height int) []line {
	lines := []line{{text: printable.Escape(fmt.Sprintf("weft on %s at %s: revision %d, %.1f commits/s, %d publishers, %d fragments, %d updates wait",
		socket, after.at.Local().Format(time.TimeOnly), after.revision, perSecond(before.revision, after.revision, after.at.Sub(before.at)),
		len(after.publishers), after.fragments, pending(after.publishers...)))}}
	sections := []section{
		{publisherTable(before, after), ""},
		{serviceTable(before, after), after.noServices},
		{get.Revisions(after.commits, after.revision), after.noCommits},
	}
	sizes := share(sections, height-len(lines))
	for i, s := range sections {
		lines = append(lines, s.lines(sizes[i])...)
	}
	return lines
}

// lines returns an empty line, column names and at most n rows.
func (s *section) lines(n int) []line {
	if s.none != "" {
		return []line{{}, {text: s.rows.Columns[0], title: true}, {text: printable.Escape(s.none)}}
	}
	t := *s.rows
	t.Rows = t.Rows[:min(n, len(t.Rows))]
	var b strings.Builder
	// A strings.Builder accepts everything.
	_ = t.Write(&b)
	out := []line{{}}
	for i, text := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		out = append(out, line{text, i == 0})
	}
	return out
}

// share returns the rows of each section: long sections get unused lines of short ones.
func share(sections []section, height int) []int {
	sizes := make([]int, len(sections))
	rows, left := 0, max(0, height-3*len(sections))
	for _, s := range sections {
		if s.none == "" {
			rows += len(s.rows.Rows)
			left++
		}
	}
	if left = min(left, rows); height <= 0 {
		left = rows
	}
	for i := 0; left > 0; i = (i + 1) % len(sections) {
		if s := sections[i]; s.none == "" && sizes[i] < len(s.rows.Rows) {
			sizes[i]++
			left--
		}
	}
	return sizes
}
