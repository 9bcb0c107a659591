package ruleset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

// expandVariables removes definitions and replaces $NAME by the values. A variable is valid until
// the definition's table or chain ends, or "undefine". A remaining "$" was reported.
func expandVariables(text string) (*source, []*syntax.Error) {
	src := &source{original: text}
	if !strings.Contains(text, "define") && !strings.Contains(text, "$") {
		src.text = text
		return src, nil
	}
	e := &expander{
		sc: scan.New(text), src: src, scopes: []scope{{}}, unknown: map[string]bool{}, line: true, commas: strings.Count(text, ","),
	}
	e.next()
	for e.tok.Kind != scan.EOF && len(e.errs) < MaxErrors {
		e.step()
	}
	if e.spent {
		return src, e.errs
	}
	e.copyTo(len(text))
	src.text, src.pieces = e.out.String(), e.out.pieces
	return src, e.errs
}

type variable struct {
	text string
	// in braces
	set bool
	// errors of uses are suppressed after an error in the definition
	wrong bool
	// such as 0x1 | 0x2, which needs parentheses next to another operator
	operation bool
	// about the number of elements
	commas int
}

// Replaced values have at most expansionBytes bytes and expansionElements elements, plus
// expansionFactor times the file's own: nested variables could expand 600 bytes to millions of
// elements.
const (
	expansionBytes    = 4 << 20
	expansionElements = 1 << 16
	expansionFactor   = 4
)

type scope map[string]variable

type expander struct {
	sc  *scan.Scanner
	src *source
	// the last token before tok, without line ends
	prev, tok scan.Token
	out       splice
	errs      []*syntax.Error
	// of the replaced values; commas of the file
	bytes, elements, commas int
	spent                   bool
	// offset in the original up to which out is complete
	copied int
	// Scopes of the file and the surrounding tables and chains; other braces share a scope. tooDeep
	// counts braces nested too deeply for a scope.
	scopes  []scope
	tooDeep int
	unknown map[string]bool
	// line: at the start of a statement; scope: the statement may open a scope
	line, scope bool
}

func (e *expander) next() {
	if e.tok.Kind != scan.Newline {
		e.prev = e.tok
	}
	e.tok = e.sc.Next()
}

func (e *expander) report(offset int, format string, args ...any) {
	plain := source{original: e.src.original}
	e.errs = append(e.errs, plain.errorAt(offset, fmt.Sprintf(format, args...)))
}

func (e *expander) copyTo(offset int) {
	if offset > e.copied {
		e.out.add(e.src.original[e.copied:offset], piece{from: e.copied})
		e.copied = offset
	}
}

func (e *expander) step() {
	begins := e.line
	e.line = e.tok.EndsStatement() || e.tok.Is("{")
	switch {
	case e.tok.Is("{"):
		e.open()
	case e.tok.Is("}"):
		e.close()
	case e.tok.Is("$"):
		if !e.use() {
			return
		}
	case e.tok.Kind == scan.String && e.prev.IsWord("prefix"):
		if !e.prefix() {
			return
		}
	case begins && e.tok.Kind == scan.Ident:
		if e.tok.IsWord("define", "redefine", "undefine") {
			e.define(e.tok.Text)
			return
		}
		e.line = e.tok.IsWord("add", "create")
		e.scope = e.tok.IsWord("table", "chain")
	}
	if e.tok.EndsStatement() {
		e.scope = false
	}
	e.next()
}

func (e *expander) open() {
	if len(e.scopes) > syntax.MaxDepth {
		e.tooDeep++
		return
	}
	inner := e.scopes[len(e.scopes)-1]
	if e.scope {
		inner = scope{}
	}
	e.scopes = append(e.scopes, inner)
	e.scope = false
}

func (e *expander) close() {
	switch {
	case e.tooDeep > 0:
		e.tooDeep--
	case len(e.scopes) > 1:
		e.scopes = e.scopes[:len(e.scopes)-1]
	}
}

// use returns false without a variable at the current token.
func (e *expander) use() bool {
	at, prev := e.tok.Offset, e.prev
	value, ok := e.variable()
	return ok && e.replace(at, e.tok.End, &value, e.fit(&value, prev))
}

// replace returns false if the limits are exceeded; the file is then not read further.
func (e *expander) replace(at, end int, v *variable, text string) bool {
	if !e.spend(at, v, text) {
		return false
	}
	e.copyTo(at)
	e.out.add(text, piece{from: at, variable: true})
	e.copied = end
	if e.out.Len() > MaxLength {
		e.report(at, "variables expand to more than %d bytes", MaxLength)
		e.tok.Kind = scan.EOF
		return false
	}
	return true
}

// prefix replaces the variables in a log prefix, the only string in which nft expands them. It
// returns false if the limits are exceeded.
func (e *expander) prefix() bool {
	text, from := e.tok.Text, e.tok.Offset+1
	for i := 0; ; {
		n := strings.IndexByte(text[i:], '$')
		if n < 0 {
			return true
		}
		start := i + n
		for i = start + 1; i < len(text) && (text[i] == '_' || '0' <= text[i] && text[i] <= '9' || 'a' <= text[i]|0x20 && text[i]|0x20 <= 'z'); {
			i++
		}
		v, ok := e.lookup(from+start, text[start+1:i])
		word, isWord := v.word()
		if ok && !isWord {
			e.report(from+start, "variable $%s is not one word or text: nothing else is possible in a log prefix", text[start+1:i])
		}
		if !ok || !isWord {
			word = "?" // already reported
		}
		if !e.replace(from+start, from+i, &v, word) {
			return false
		}
	}
}

// spend returns false if the limits are exceeded; the file is then not read further.
func (e *expander) spend(at int, v *variable, text string) bool {
	bytes, elements := expansionBytes+expansionFactor*len(e.src.original), expansionElements+expansionFactor*e.commas
	e.bytes += len(text)
	e.elements += v.commas
	switch {
	case e.bytes > bytes:
		e.report(at, "the variables of the file expand to more than %d bytes: use a set", bytes)
	case e.elements > elements:
		e.report(at, "the variables of the file expand to more than %d elements: use a set", elements)
	default:
		return true
	}
	e.tok.Kind, e.spent = scan.EOF, true
	return false
}

// word returns a one-word value or a single text, unquoted.
func (v *variable) word() (string, bool) {
	if inner, ok := strings.CutPrefix(v.text, `"`); ok && strings.IndexByte(inner, '"') == len(inner)-1 {
		return strings.TrimSuffix(inner, `"`), true
	}
	return v.text, scan.IsWord(v.text)
}

// The tokens around the value must not merge with it, an operation keeps its own operands, and
// nested sets are flattened. If nft requires a word, the value may have quotes.
func (e *expander) fit(v *variable, prev scan.Token) string {
	text := v.text
	if prev.IsWord("jump", "goto", "policy", "priority") {
		if word, ok := v.word(); ok {
			text = word
		}
	}
	if v.set && prev.Is("{", ",") && e.peek().Is("}", ",") {
		if inner := strings.Trim(text[1:len(text)-1], " ,"); inner != "" {
			text = inner
		}
	}
	if v.operation && (isOperation(prev) || isOperation(e.peek())) {
		text = "(" + text + ")"
	}
	if prev.End == e.tok.Offset-1 && (prev.Kind == scan.Ident || prev.Kind == scan.Number || prev.Kind == scan.Word || prev.Kind == scan.Addr) {
		text = " " + text
	}
	return text
}

// peek returns the next token that is not a line end.
func (e *expander) peek() scan.Token {
	sc := *e.sc
	for {
		if t := sc.Next(); t.Kind != scan.Newline {
			return t
		}
	}
}

func isOperation(t scan.Token) bool {
	return t.Is("|", "&", "^", "<<", ">>") || t.IsWord("or", "and", "xor", "lshift", "rshift")
}

// The name after a "$" stays the current token.
func (e *expander) variable() (variable, bool) {
	at := e.tok
	e.next()
	if e.tok.Kind != scan.Ident || e.tok.Offset != at.End {
		e.report(at.Offset, "unexpected \"$\": want a variable such as $NAME")
		return variable{}, false
	}
	return e.lookup(at.Offset, e.tok.Text)
}

// at is an offset of the original.
func (e *expander) lookup(at int, name string) (variable, bool) {
	for i := len(e.scopes) - 1; i >= 0; i-- {
		if v, ok := e.scopes[i][name]; ok {
			return v, !v.wrong
		}
	}
	switch {
	case name == "":
		e.report(at, "unexpected \"$\": want a variable such as $NAME")
	case !e.unknown[name]:
		e.unknown[name] = true
		e.report(at, "unknown variable $%s: define it before its use", name)
	}
	return variable{}, false
}

func (e *expander) define(word string) {
	at := e.tok.Offset
	if word == "undefine" {
		e.undefinition()
	} else {
		e.definition(word == "redefine")
	}
	e.copyTo(at)
	e.copied = max(e.copied, e.tok.Offset)
	e.line = true
}

// undefinition accepts a variable that does not exist, as nft(8) does.
func (e *expander) undefinition() {
	e.next()
	if e.tok.Kind != scan.Ident {
		e.report(e.tok.Offset, "unexpected %s: want the name of a variable", e.tok)
		e.skipStatement()
		return
	}
	delete(e.scopes[len(e.scopes)-1], e.tok.Text)
	if e.next(); !e.tok.EndsStatement() {
		e.report(e.tok.Offset, "unexpected %s: want the end of the line or \";\"", e.tok)
		e.skipStatement()
	}
}

func (e *expander) definition(redefine bool) {
	e.next()
	name := e.tok
	if name.Kind != scan.Ident {
		e.report(name.Offset, "unexpected %s: want the name of a variable", name)
		e.skipStatement()
		return
	}
	if e.next(); !e.tok.Is("=") {
		e.report(e.tok.Offset, "unexpected %s: want \"=\"", e.tok)
		e.skipStatement()
		e.scopes[len(e.scopes)-1][name.Text] = variable{wrong: true}
		return
	}
	e.next()
	value := e.value()
	known := slices.ContainsFunc(e.scopes, func(s scope) bool { _, ok := s[name.Text]; return ok })
	switch {
	case e.spent:
		return
	case value.wrong:
	case value.text == "":
		e.report(name.Offset, "variable %s has no value", name.Text)
		value.wrong = true
	case known && !redefine:
		e.report(name.Offset, "variable %s is defined twice", name.Text)
	}
	e.scopes[len(e.scopes)-1][name.Text] = value
}

func (e *expander) skipStatement() {
	for e.tok.Kind != scan.EOF && e.tok.Kind != scan.Newline && e.tok.Kind != scan.Semicolon {
		e.next()
	}
}

// value reads a value and joins its lines.
func (e *expander) value() variable {
	var (
		b strings.Builder
		v variable
	)
	v.set = e.tok.Is("{")
	depth, end := 0, -1
	for e.tok.Kind != scan.EOF {
		switch {
		case e.tok.Is("{", "("):
			depth++
		case e.tok.Is("}", ")"):
			depth--
		}
		if depth < 0 || depth == 0 && (e.tok.Kind == scan.Newline || e.tok.Kind == scan.Semicolon) {
			break
		}
		v.set = v.set && (depth > 0 || e.tok.Is("}"))
		v.operation = v.operation || depth == 0 && isOperation(e.tok)
		text, at := e.src.original[e.tok.Offset:e.tok.End], e.tok.Offset
		if e.tok.Is("$") {
			prev := e.prev
			used, ok := e.variable()
			if !ok {
				v.wrong = true
				continue
			}
			v.operation = v.operation || depth == 0 && used.operation
			v.set = v.set || used.set && b.Len() == 0 && depth == 0
			text = e.fit(&used, prev)
			if !e.spend(at, &used, text) {
				break
			}
			v.commas += used.commas
		}
		if e.tok.Kind == scan.Illegal {
			e.report(at, "%s", e.tok.Text)
			v.wrong = true
		}
		if e.tok.Is(",") {
			v.commas++
		}
		if e.tok.Kind != scan.Newline {
			if end >= 0 && at > end {
				b.WriteByte(' ')
			}
			b.WriteString(text)
			end = e.tok.End
		}
		e.next()
	}
	v.text = b.String()
	return v
}
