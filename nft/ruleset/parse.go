package ruleset

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

// The limits of Parse and Include.
const (
	// MaxLength is the longest file in bytes, before and after the replacement of variables.
	MaxLength = 64 << 20
	// MaxErrors is the most errors reported for a file.
	MaxErrors = 50
)

// Parse parses a whole file like `nft -f`. Repeated tables, chains and sets are joined, in the
// order of their first mention.
//
// Commands that flush, delete or insert change earlier declarations of the file. Flushing or
// deleting a table before its declaration has no effect. Handles, commands that ask the kernel, such
// as list, and include are errors.
//
// The error is an *ErrorList with the errors of all statements.
func Parse(name, text string) ([]nft.Table, error) {
	if err := CheckLength(name, text); err != nil {
		return nil, err
	}
	p := newParser(text)
	p.parse()
	if len(p.errs) > 0 {
		return nil, &ErrorList{name, sortErrors(p.errs)}
	}
	return p.build(), nil
}

// CheckLength returns an *ErrorList if a file is longer than MaxLength.
func CheckLength(name, text string) error {
	if len(text) > MaxLength {
		return &ErrorList{name, []*syntax.Error{{Msg: fmt.Sprintf("file has %d bytes: the limit is %d", len(text), MaxLength)}}}
	}
	return nil
}

// reader reads statements. Unlike the parser of rules, it continues after an error.
type reader struct {
	scan.Cursor
	src  *source
	sc   *scan.Scanner
	errs []*syntax.Error
	// offset of the current statement
	begin int
	// offsets of reported unknown text, in order; suppress other errors of the same statement
	skipped []int
	// offsets of the errors
	wrong   []int
	unknown map[string]bool
	// a part of the file was not read
	partial bool
	// the rest is meaningless after an error
	stopped bool
	// nesting of element lists
	depth int
}

// bodies reads the contents of sets, flowtables and objects.
type bodies struct {
	reader
	// nil if not needed
	positions *Positions
}

// parser reads commands and keeps the declared tables.
type parser struct {
	bodies
	// anonymous chains with the same name
	copies map[nft.TableID]int
	// after a declaration outside of a table
	lost bool
	registry
	// flushed or deleted before their declaration
	later []laterTable
	// in a create command, which must declare new objects
	creating bool
}

func newParser(text string) *parser {
	src, errs := expandVariables(text)
	return &parser{
		bodies:   bodies{reader: reader{src: src, sc: scan.New(src.text), errs: errs, unknown: map[string]bool{}}},
		registry: registry{tables: map[nft.TableID]*table{}, mentioned: map[nft.TableID]bool{}, flushes: map[nft.Family]int{}},
		copies:   map[nft.TableID]int{},
	}
}

func (p *parser) parse() {
	p.Start(&p.reader)
	for p.Tok.Kind != scan.EOF && len(p.errs) < MaxErrors {
		p.command()
	}
	p.checkLater()
}

// Next reports an illegal token. After it, or after a variable without a value, it returns the end
// of the statement.
func (p *reader) Next() scan.Token {
	t := p.sc.Next()
	if t.Kind != scan.Illegal && !t.Is("$") {
		return t
	}
	if t.Kind == scan.Illegal && len(p.errs) < MaxErrors {
		p.errs = append(p.errs, p.src.errorAt(t.Offset, t.Text))
	}
	p.skipped = append(p.skipped, t.Offset)
	for depth := 0; t.Kind != scan.EOF && (depth > 0 || !t.EndsStatement()); t = p.sc.Next() {
		switch {
		case t.Is("{"):
			depth++
		case t.Is("}"):
			depth--
		}
	}
	return t
}

// report ignores an error that another error caused; offset is in the expanded text.
func (p *reader) report(offset int, format string, args ...any) {
	if len(p.errs) < MaxErrors && !p.stopped && !p.skips(p.begin, offset) {
		p.errs = append(p.errs, p.src.errorAt(offset, fmt.Sprintf(format, args...)))
		p.wrong = append(p.wrong, offset)
	}
}

func (p *reader) skips(from, to int) bool {
	i := sort.SearchInts(p.skipped, from)
	return i < len(p.skipped) && p.skipped[i] <= to
}

// faulty reports whether there is an error from an offset to the current token.
func (p *reader) faulty(from int) bool {
	return p.skips(from, p.Tok.Offset) || slices.ContainsFunc(p.wrong, func(at int) bool { return from <= at && at <= p.Tok.Offset })
}

func (p *reader) stop(at scan.Token, format string, args ...any) {
	p.Fail(at, format, args...)
	p.stopped, p.partial = true, true
	p.Tok.Kind, p.Ahead.Kind = scan.EOF, scan.EOF
}

// undeclared reports the first use of an undeclared name.
func (p *reader) undeclared(at scan.Token, name, format string, args ...any) {
	if p.unknown[name] {
		p.Failed = true
		return
	}
	p.unknown[name] = true
	p.Fail(at, format, args...)
}

// reportInside records another parser's error; place converts its position to an offset.
func (p *reader) reportInside(place func(syntax.Pos) int, err error) {
	pos, msg := syntax.Pos{Line: 1, Column: 1}, err.Error()
	if e := (*syntax.Error)(nil); errors.As(err, &e) {
		pos, msg = e.Pos, e.Msg
	}
	p.report(place(pos), "%s", msg)
}

// Report stops the parser until recover is called.
func (p *reader) Report(t scan.Token, format string, args ...any) {
	p.report(t.Offset, format, args...)
	p.Failed = true
}

// recover skips to the line end or semicolon outside of the statement's braces, or to before the
// block's closing brace. braces counts the open braces in the block.
func (p *reader) recover(braces int) {
	if !p.Failed {
		return
	}
	p.Failed = false
	for p.Tok.Kind != scan.EOF {
		switch {
		case p.Braces > braces:
		case p.Tok.Kind == scan.Newline, p.Tok.Kind == scan.Semicolon:
			return
		case braces > 0 && p.IsPunct("}"):
			return
		}
		p.Advance()
	}
}

func (p *reader) name(want string) string {
	at := p.Tok
	name := p.ExpectIdent(want)
	if p.Failed {
		return ""
	}
	if p.src.fromVariable(at.Offset) {
		p.Fail(at, "unexpected variable: want %s, written as a word", want)
		return ""
	}
	if err := datatype.CheckName(name); err != nil {
		p.Fail(at, "%s", err)
		return ""
	}
	return name
}

func (p *reader) ends() bool {
	return p.Failed || p.Tok.EndsStatement()
}

func (p *reader) expectEnd() {
	if !p.ends() {
		p.Unexpected("the end of the line or \";\"")
	}
}

func (p *reader) block(statement func()) {
	open := p.Tok
	p.ExpectPunct("{")
	if p.Failed {
		return
	}
	inside := p.Braces
	for len(p.errs) < MaxErrors && p.Braces >= inside {
		p.SkipEnds()
		switch {
		case p.AcceptPunct("}"):
			return
		case p.Tok.Kind == scan.EOF:
			p.stop(open, "block is not closed: add \"}\"")
			return
		}
		p.begin = p.Tok.Offset
		statement()
		p.expectEnd()
		p.recover(inside)
	}
}

// text consumes a statement's rest, up to its end, a bracket, or a word or operator in stop, and
// returns one line without comments. With newlines, line ends count as blanks.
func (p *reader) text(newlines bool, stop ...string) string {
	var b strings.Builder
	end := -1
	for !p.Failed && p.Tok.Kind != scan.EOF && !p.stops(stop) {
		if p.Tok.Kind == scan.Punct && strings.Contains("{}()", p.Tok.Text) {
			break
		}
		if p.ends() && !(newlines && p.Tok.Kind == scan.Newline) {
			break
		}
		if p.Tok.Kind != scan.Newline {
			if end >= 0 && p.Tok.Offset > end {
				b.WriteByte(' ')
			}
			b.WriteString(p.src.text[p.Tok.Offset:p.Tok.End])
			end = p.Tok.End
		}
		p.Advance()
	}
	return b.String()
}

func (p *reader) stops(stop []string) bool {
	return (p.Tok.Kind == scan.Punct || p.Tok.Kind == scan.Ident) && slices.Contains(stop, p.Tok.Text)
}
