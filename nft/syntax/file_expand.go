package syntax

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// source is the text of a file after its variables were replaced, with the
// way back to the text as written.
type source struct {
	// text is what is parsed, original what was given.
	text, original string
	// pieces tell where parts of text come from, in order; none where text
	// is the original.
	pieces []piece
	lines  []int
}

// piece says that text from offset at comes from the original at from. A
// variable's value comes as a whole from the place where it is used.
type piece struct {
	at, from int
	variable bool
}

// errorAt makes an error at an offset of the expanded text.
func (s *source) errorAt(offset int, msg string) *Error {
	if i := sort.Search(len(s.pieces), func(i int) bool { return s.pieces[i].at > offset }) - 1; i >= 0 {
		if p := s.pieces[i]; p.variable {
			offset = p.from
		} else {
			offset = p.from + offset - p.at
		}
	}
	if s.lines == nil {
		s.lines = []int{0}
		for i := range len(s.original) {
			if s.original[i] == '\n' {
				s.lines = append(s.lines, i+1)
			}
		}
	}
	offset = min(offset, len(s.original))
	line := sort.SearchInts(s.lines, offset+1) - 1
	end := len(s.original)
	if line+1 < len(s.lines) {
		end = s.lines[line+1] - 1
	}
	return &Error{
		Pos:  Pos{Line: line + 1, Column: offset - s.lines[line] + 1},
		Msg:  msg,
		Line: strings.TrimSuffix(s.original[s.lines[line]:end], "\r"),
	}
}

// offsetOf returns the offset in text of a place in the part of it that
// begins at base.
func (s *source) offsetOf(base int, pos Pos) int {
	at := base
	for line := 1; line < pos.Line; line++ {
		i := strings.IndexByte(s.text[at:], '\n')
		if i < 0 {
			return len(s.text)
		}
		at += i + 1
	}
	return min(at+max(pos.Column-1, 0), len(s.text))
}

// sortErrors orders errors by their place and keeps the first of each place.
func sortErrors(errs []*Error) []*Error {
	slices.SortStableFunc(errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return slices.CompactFunc(errs, func(a, b *Error) bool { return a.Pos == b.Pos })
}

// expandVariables takes the definitions ("define NAME = VALUE") out of a file
// and replaces $NAME by their values. A variable is known from its definition
// to the end of the block that the definition stands in.
func expandVariables(text string) (*source, []*Error) {
	src := &source{text: text, original: text}
	if !strings.Contains(text, "define") && !strings.Contains(text, "$") {
		return src, nil
	}
	e := &expander{sc: NewScanner(text), src: src, scopes: []map[string]string{{}}, line: true}
	e.next()
	for e.tok.Kind != EOF && len(e.errs) < MaxErrors {
		e.step()
	}
	e.copyTo(len(text))
	src.text, src.pieces = e.out.String(), e.pieces
	return src, e.errs
}

// expander is the pass over a file that replaces its variables.
type expander struct {
	sc     *Scanner
	src    *source
	tok    Token
	out    strings.Builder
	pieces []piece
	errs   []*Error
	// copied is how far the original was copied to out.
	copied int
	// scopes are the variables of the blocks around the current place.
	scopes []map[string]string
	// line is true at the beginning of a statement.
	line bool
}

func (e *expander) next() {
	var err *Error
	if e.tok, err = e.sc.Next(); err != nil {
		// The parser reports it; go on with the next line.
		e.sc.off = e.endOfLine()
		e.tok.Kind, e.tok.Text = Newline, ""
	}
}

func (e *expander) endOfLine() int {
	if i := strings.IndexByte(e.src.original[e.sc.off:], '\n'); i >= 0 {
		return e.sc.off + i
	}
	return len(e.src.original)
}

// report records an error at an offset of the original.
func (e *expander) report(offset int, format string, args ...any) {
	plain := source{original: e.src.original}
	e.errs = append(e.errs, plain.errorAt(offset, fmt.Sprintf(format, args...)))
}

// copyTo copies the original up to an offset.
func (e *expander) copyTo(offset int) {
	if offset > e.copied {
		e.pieces = append(e.pieces, piece{at: e.out.Len(), from: e.copied})
		e.out.WriteString(e.src.original[e.copied:offset])
		e.copied = offset
	}
}

// step handles one token.
func (e *expander) step() {
	start := e.line
	e.line = e.tok.Kind == Newline || e.tok.Kind == Semicolon || e.tok.Kind == Punct && (e.tok.Text == "{" || e.tok.Text == "}")
	switch {
	case e.tok.Kind == Punct && e.tok.Text == "{":
		if len(e.scopes) <= MaxDepth {
			e.scopes = append(e.scopes, nil)
		}
	case e.tok.Kind == Punct && e.tok.Text == "}":
		if len(e.scopes) > 1 {
			e.scopes = e.scopes[:len(e.scopes)-1]
		}
	case e.tok.Kind == Punct && e.tok.Text == "$":
		at := e.tok.Offset
		value, ok := e.variable()
		if !ok {
			return
		}
		e.copyTo(at)
		e.pieces = append(e.pieces, piece{at: e.out.Len(), from: at, variable: true})
		e.out.WriteString(value)
		e.copied = e.tok.End
		if e.out.Len() > MaxFileLength {
			e.report(at, "variables expand to more than %d bytes", MaxFileLength)
			e.tok.Kind = EOF
			return
		}
	case start && e.tok.Kind == Ident && (e.tok.Text == "define" || e.tok.Text == "redefine"):
		at := e.tok.Offset
		e.definition(e.tok.Text == "redefine")
		e.copyTo(at)
		e.copied = max(e.copied, e.tok.Offset)
		e.line = true
		return
	}
	e.next()
}

// variable reads the name behind a "$", which it leaves as the current token,
// and returns its value.
func (e *expander) variable() (string, bool) {
	at := e.tok
	e.next()
	if e.tok.Kind != Ident || e.tok.Offset != at.End {
		e.report(at.Offset, "unexpected \"$\": want a variable such as $NAME")
		return "", false
	}
	for i := len(e.scopes) - 1; i >= 0; i-- {
		if v, ok := e.scopes[i][e.tok.Text]; ok {
			return v, true
		}
	}
	e.report(at.Offset, "unknown variable $%s: define it before its use", e.tok.Text)
	return "", true
}

// definition reads "define NAME = VALUE" up to the end of the statement.
func (e *expander) definition(redefine bool) {
	e.next()
	name := e.tok
	if name.Kind != Ident {
		e.report(name.Offset, "unexpected %s: want the name of a variable", name)
		e.skipStatement()
		return
	}
	if e.next(); e.tok.Kind != Punct || e.tok.Text != "=" {
		e.report(e.tok.Offset, "unexpected %s: want \"=\"", e.tok)
		e.skipStatement()
		return
	}
	e.next()
	value := e.value()
	known := slices.ContainsFunc(e.scopes, func(scope map[string]string) bool { _, ok := scope[name.Text]; return ok })
	switch {
	case value == "":
		e.report(name.Offset, "variable %s has no value", name.Text)
	case known && !redefine:
		e.report(name.Offset, "variable %s is defined twice", name.Text)
	}
	scope := e.scopes[len(e.scopes)-1]
	if scope == nil {
		scope = map[string]string{}
		e.scopes[len(e.scopes)-1] = scope
	}
	scope[name.Text] = value
}

func (e *expander) skipStatement() {
	for e.tok.Kind != EOF && e.tok.Kind != Newline && e.tok.Kind != Semicolon {
		e.next()
	}
}

// value reads the rest of a definition onto one line.
func (e *expander) value() string {
	var b strings.Builder
	depth, end := 0, -1
	for e.tok.Kind != EOF {
		switch {
		case e.tok.Kind == Punct && e.tok.Text == "{":
			depth++
		case e.tok.Kind == Punct && e.tok.Text == "}":
			depth--
		}
		if depth < 0 || depth == 0 && (e.tok.Kind == Newline || e.tok.Kind == Semicolon) {
			break
		}
		text := e.src.original[e.tok.Offset:e.tok.End]
		at := e.tok.Offset
		if e.tok.Kind == Punct && e.tok.Text == "$" {
			value, ok := e.variable()
			if !ok {
				continue
			}
			text = value
		}
		if e.tok.Kind != Newline {
			if end >= 0 && at > end {
				b.WriteByte(' ')
			}
			b.WriteString(text)
			end = e.tok.End
		}
		if b.Len() > MaxFileLength {
			e.report(at, "variables expand to more than %d bytes", MaxFileLength)
			e.tok.Kind = EOF
			break
		}
		e.next()
	}
	return b.String()
}
