package syntax

import (
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
)

// The bounds of what ParseFile accepts.
const (
	// MaxFileLength is the greatest length of a file in bytes, before and
	// after its variables are replaced.
	MaxFileLength = 64 << 20
	// MaxErrors is how many errors of a file are reported.
	MaxErrors = 50
)

// ErrorList are the errors of a file, in order. Its elements are found by
// errors.As.
type ErrorList struct {
	// Name is the file's name as given to ParseFile.
	Name   string
	Errors []*Error
}

// Error returns one line "name:line:column: message" for each error.
func (l *ErrorList) Error() string {
	var b strings.Builder
	for i, e := range l.Errors {
		if i > 0 {
			b.WriteByte('\n')
		}
		if l.Name != "" && e.File == "" {
			b.WriteString(l.Name)
			b.WriteByte(':')
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// Unwrap returns the errors.
func (l *ErrorList) Unwrap() []error {
	out := make([]error, len(l.Errors))
	for i, e := range l.Errors {
		out[i] = e
	}
	return out
}

// ParseFile parses a whole file as `nft -f` reads it: table blocks and
// commands, comments, continued lines and variables. Tables, chains and sets that
// the file mentions several times are joined, in the order of their first mention.
//
// The file is a declaration of what shall be. Commands that flush, delete, insert or
// rename change what the file has declared before them; of what there was before the
// file, they can flush and delete what the file declares, which changes nothing. What
// else refers to the kernel (handles, list, reset, ...) is an error; as is include,
// which would read other files: see [Include]. Rules and the bodies of objects are
// checked and brought into canonical form; the types of sets and the keys of elements
// are text until package compile sees them.
//
// The error is an *ErrorList with the errors of all statements.
func ParseFile(name, text string) ([]nft.Table, error) {
	if err := checkFileLength(name, len(text)); err != nil {
		return nil, err
	}
	p := newFileParser(text)
	p.parse()
	if len(p.errs) > 0 {
		return nil, &ErrorList{name, sortErrors(p.errs)}
	}
	return p.build(), nil
}

// checkFileLength refuses a file that is too long.
func checkFileLength(name string, n int) error {
	if n > MaxFileLength {
		return &ErrorList{name, []*Error{{Msg: fmt.Sprintf("file has %d bytes: at most %d are possible", n, MaxFileLength)}}}
	}
	return nil
}

// build returns the tables that were read.
func (p *fileParser) build() []nft.Table {
	tables := make([]nft.Table, 0, len(p.order))
	for _, t := range p.order {
		if p.table(t.table.ID()) == t {
			tables = append(tables, t.build())
		}
	}
	return tables
}

func newFileParser(text string) *fileParser {
	src, errs := expandVariables(text)
	return &fileParser{src: src, sc: NewScanner(src.text), errs: errs, bad: -1, tables: map[nft.TableID]*fileTable{}, mentioned: map[nft.TableID]bool{}, flushes: map[nft.Family]int{}}
}

// parse reads the whole file.
func (p *fileParser) parse() {
	p.next = p.scan()
	p.advance()
	for p.tok.Kind != EOF && len(p.errs) < MaxErrors {
		p.command()
	}
	p.checkLater()
}

// fileParser is a recursive-descent parser of a file, with one token of
// lookahead. Unlike the parser of rules it goes on behind an error, at the
// next statement.
type fileParser struct {
	src       *source
	sc        *Scanner
	tok, next Token
	// end is the offset behind the token that was consumed last.
	end    int
	errs   []*Error
	failed bool
	// bad is the offset of the last thing that the scanner refused.
	bad    int
	tables map[nft.TableID]*fileTable
	// order are the tables in the order of their first mention, with those that were
	// removed again.
	order []*fileTable
	// flushes count the "flush ruleset" of each family: tables from before are gone.
	flushes map[nft.Family]int
	// mentioned are all tables that the file declares or has declared, later those
	// that it changes before.
	mentioned map[nft.TableID]bool
	later     []laterTable
	// creating is true in a create command: what it declares must be new.
	creating bool
	// places notes where declarations are, if somebody asked.
	places *Places
	// braces counts the braces that are open at the current token, depth the
	// lists of elements in one another.
	braces, depth int
}

// scan reads a token. What the scanner refuses is an error and a line end.
func (p *fileParser) scan() Token {
	t, err := p.sc.Next()
	if err == nil {
		return t
	}
	p.report(t.Offset, "%s", err.Msg)
	p.bad = t.Offset
	if i := strings.IndexByte(p.src.text[p.sc.off:], '\n'); i >= 0 {
		p.sc.off += i
	} else {
		p.sc.off = len(p.src.text)
	}
	t.Kind, t.End = Newline, p.sc.off
	return t
}

func (p *fileParser) advance() {
	if p.tok.Kind == Punct {
		switch p.tok.Text {
		case "{":
			p.braces++
		case "}":
			p.braces = max(0, p.braces-1)
		}
	}
	p.end = p.tok.End
	p.tok = p.next
	if p.tok.Kind != EOF {
		p.next = p.scan()
	}
}

// report records an error at an offset of the expanded text.
func (p *fileParser) report(offset int, format string, args ...any) {
	if len(p.errs) < MaxErrors {
		p.errs = append(p.errs, p.src.errorAt(offset, fmt.Sprintf(format, args...)))
	}
}

// fail records an error at a token and leaves the statement: until recover is
// called, nothing is consumed or recorded.
func (p *fileParser) fail(t Token, format string, args ...any) {
	if !p.failed {
		p.report(t.Offset, format, args...)
		p.failed = true
	}
}

func (p *fileParser) unexpected(want string) {
	p.fail(p.tok, "unexpected %s: want %s", p.tok, want)
}

// recover skips to the end of a statement that failed in a block with the
// given number of open braces: to the line end or semicolon outside of the
// braces that the statement opened, or before the brace that closes the block.
func (p *fileParser) recover(braces int) {
	if !p.failed {
		return
	}
	p.failed = false
	for p.tok.Kind != EOF {
		switch {
		case p.braces > braces:
		case p.tok.Kind == Newline, p.tok.Kind == Semicolon:
			return
		case braces > 0 && p.isPunct("}"):
			return
		}
		p.advance()
	}
}

func (p *fileParser) isPunct(text string) bool {
	return !p.failed && p.tok.Kind == Punct && p.tok.Text == text
}

func (p *fileParser) isIdent(text string) bool {
	return !p.failed && p.tok.Kind == Ident && p.tok.Text == text
}

func (p *fileParser) acceptPunct(text string) bool {
	if !p.isPunct(text) {
		return false
	}
	p.advance()
	return true
}

func (p *fileParser) acceptIdent(text string) bool {
	if !p.isIdent(text) {
		return false
	}
	p.advance()
	return true
}

func (p *fileParser) expectPunct(text string) {
	if !p.failed && !p.acceptPunct(text) {
		p.unexpected(fmt.Sprintf("%q", text))
	}
}

func (p *fileParser) expectIdent(want string) string {
	if p.failed {
		return ""
	}
	if p.tok.Kind != Ident {
		p.unexpected(want)
		return ""
	}
	text := p.tok.Text
	p.advance()
	return text
}

// name consumes the name of a table, chain or set.
func (p *fileParser) name(want string) string {
	at := p.tok
	name := p.expectIdent(want)
	if p.failed {
		return ""
	}
	if p.src.fromVariable(at.Offset) {
		p.fail(at, "unexpected variable: want %s as a word", want)
		return ""
	}
	if err := datatype.CheckName(name); err != nil {
		p.fail(at, "%s", err)
		return ""
	}
	return name
}

// ends reports whether a statement ends at the current token.
func (p *fileParser) ends() bool {
	return p.failed || p.tok.Kind == EOF || p.tok.Kind == Newline || p.tok.Kind == Semicolon || p.isPunct("}")
}

// expectEnd checks that the statement is over.
func (p *fileParser) expectEnd() {
	if !p.ends() {
		p.unexpected("the end of the line or \";\"")
	}
}

// skipEnds skips line ends and semicolons.
func (p *fileParser) skipEnds() {
	for p.tok.Kind == Newline || p.tok.Kind == Semicolon {
		p.advance()
	}
}

// skipNewlines skips line ends.
func (p *fileParser) skipNewlines() {
	for !p.failed && p.tok.Kind == Newline {
		p.advance()
	}
}

// block parses "{ statement ... }".
func (p *fileParser) block(statement func()) {
	open := p.tok
	p.expectPunct("{")
	if p.failed {
		return
	}
	inside := p.braces
	for len(p.errs) < MaxErrors && p.braces >= inside {
		p.skipEnds()
		switch {
		case p.acceptPunct("}"):
			return
		case p.tok.Kind == EOF:
			p.fail(open, "block is not closed: add \"}\"")
			return
		}
		statement()
		p.expectEnd()
		p.recover(inside)
	}
}

// text consumes the rest of a statement, up to its end, a bracket, or one of
// the stop words or operators, and returns it on one line without comments.
// Line ends count as blanks where newlines is true.
func (p *fileParser) text(newlines bool, stop ...string) string {
	var b strings.Builder
	end := -1
	for !p.failed && p.tok.Kind != EOF && !p.stops(stop) {
		if p.tok.Kind == Punct && strings.Contains("{}()", p.tok.Text) {
			break
		}
		if p.ends() && !(newlines && p.tok.Kind == Newline) {
			break
		}
		if p.tok.Kind != Newline {
			if end >= 0 && p.tok.Offset > end {
				b.WriteByte(' ')
			}
			b.WriteString(p.src.text[p.tok.Offset:p.tok.End])
			end = p.tok.End
		}
		p.advance()
	}
	return b.String()
}

func (p *fileParser) stops(stop []string) bool {
	if p.tok.Kind != Punct && p.tok.Kind != Ident {
		return false
	}
	for _, s := range stop {
		if p.tok.Text == s {
			return true
		}
	}
	return false
}
