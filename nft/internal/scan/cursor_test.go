package scan

import (
	"fmt"
	"testing"
	"time"
)

// recorder is a parser that records its errors.
type recorder struct {
	Cursor
	*Scanner
	errs *[]string
}

func (r *recorder) Report(at Token, format string, args ...any) {
	*r.errs = append(*r.errs, at.Pos.String()+": "+fmt.Sprintf(format, args...))
	r.Failed = true
}

// newCursor returns a cursor that records its errors.
func newCursor(text string, errs *[]string) *Cursor {
	r := &recorder{Scanner: New(text), errs: errs}
	r.Start(r)
	return &r.Cursor
}

func TestCursor(t *testing.T) {
	var errs []string
	c := newCursor("\n; add { 5s \"x\" } , y", &errs)
	c.SkipNewlines()
	c.SkipEnds()
	if got := c.OneOf("insert", "add"); got != "add" || c.End != 6 {
		t.Errorf("word %q, end %d", got, c.End)
	}
	c.ExpectPunct("{")
	if d := c.ExpectTime(); d != 5*time.Second || c.Braces != 1 {
		t.Errorf("time %v in %d braces", d, c.Braces)
	}
	if got := c.ExpectText("a text"); got != "x" {
		t.Errorf("text %q", got)
	}
	if !c.Tok.EndsStatement() || c.AcceptIdent("y") || !c.AcceptPunct("}") || c.Braces != 0 {
		t.Errorf("at %v in %d braces", c.Tok, c.Braces)
	}
	if !c.IsPunct(",") || c.IsIdent(",") || c.Ahead.Text != "y" {
		t.Errorf("at %v before %v", c.Tok, c.Ahead)
	}
	if len(errs) > 0 {
		t.Error(errs)
	}
}

// TestCursorErrors checks the message of each failure, and that only the first counts.
func TestCursorErrors(t *testing.T) {
	for want, f := range map[string]func(*Cursor){
		`1:1: unexpected "a": want ";"`:                        func(c *Cursor) { c.ExpectPunct(";") },
		`1:1: unexpected "a": want b, c`:                       func(c *Cursor) { c.OneOf("b", "c") },
		`1:1: unexpected "a": want a time such as 1h30m or 5s`: func(c *Cursor) { c.ExpectTime() },
		`1:3: unexpected end of line: want a name`:             func(c *Cursor) { c.Advance(); c.Advance(); c.ExpectIdent("a name") },
		`2:1: unexpected character '\x00'`:                     func(c *Cursor) { c.Inline++; c.Advance(); c.Advance() },
	} {
		var errs []string
		c := newCursor("a:\n\x00", &errs)
		f(c)
		c.Unexpected("something else")
		if len(errs) != 1 || errs[0] != want {
			t.Errorf("errors %q, want %q", errs, want)
		}
		if c.AcceptIdent("a") || c.AcceptPunct(":") {
			t.Errorf("%s: a token is accepted after the error", want)
		}
	}
}

func TestIsNameAndWord(t *testing.T) {
	for text, want := range map[string][2]bool{
		"a-b": {true, true}, "10.0.0.1": {false, true}, "5s": {false, true}, "80": {false, true},
		"a b": {}, " a": {}, "a;": {}, `"a"`: {}, "": {}, "{": {},
	} {
		if got := [2]bool{IsName(text), IsWord(text)}; got != want {
			t.Errorf("%q: name and word %v, want %v", text, got, want)
		}
	}
	if !IsClassID("1:2a") || IsClassID("80:accept") {
		t.Error("classes of traffic control")
	}
}
