package syntax

import (
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/nft/internal/scan"
)

// Pos is a line and byte column, both from 1. The zero value is unknown.
type Pos = scan.Pos

// Error is an error at a place of the source.
type Error struct {
	// name of an included file, or empty
	File string
	Pos  Pos
	Msg  string
	// source line at Pos, without its newline
	Line string
}

// ErrorAt returns an error at pos. The caller sets Line.
func ErrorAt(pos Pos, format string, args ...any) *Error {
	return &Error{Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

// Error returns "line:column: message", after the name of an included file.
func (e *Error) Error() string {
	if e.File != "" {
		return e.File + ":" + e.Pos.String() + ": " + e.Msg
	}
	return e.Pos.String() + ": " + e.Msg
}

// Excerpt returns the source line and a caret line, or "".
func (e *Error) Excerpt() string {
	if !e.Pos.IsValid() {
		return ""
	}
	return Caret(e.Line, e.Pos.Column)
}

// Caret returns the line and a caret below a byte column (from 1), and keeps tabs.
func Caret(line string, column int) string {
	blank := func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}
	return line + "\n" + strings.Map(blank, line[:min(max(column-1, 0), len(line))]) + "^"
}

// SourceLine returns line n (from 1) of text, without its newline.
func SourceLine(text string, n int) string {
	for ; n > 1; n-- {
		_, text, _ = strings.Cut(text, "\n")
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r")
}
