package syntax

import (
	"fmt"
	"slices"
	"strings"
)

// expandVariables takes the definitions ("define NAME = VALUE") out of a file
// and replaces $NAME by their values. A variable is known from its definition
// to the end of the table or chain that the definition stands in, or until it is
// undefined.
func expandVariables(text string) (*source, []*Error) {
	src := &source{text: text, original: text}
	if !strings.Contains(text, "define") && !strings.Contains(text, "$") {
		return src, nil
	}
	e := &expander{sc: NewScanner(text), src: src, scopes: []map[string]variable{{}}, blocks: []bool{}, line: true}
	e.next()
	for e.tok.Kind != EOF && len(e.errs) < MaxErrors {
		e.step()
	}
	e.copyTo(len(text))
	src.text, src.pieces = e.out.String(), e.pieces
	return src, e.errs
}

// variable is the value of a variable.
type variable struct {
	text string
	// set is true for a value in braces.
	set bool
	// operation is true for a value such as 0x1 | 0x2, which needs parentheses beside
	// another operator.
	operation bool
}

// expander is the pass over a file that replaces its variables.
type expander struct {
	sc  *Scanner
	src *source
	// prev is the token before tok that is no line end.
	prev, tok Token
	out       strings.Builder
	pieces    []piece
	errs      []*Error
	// copied is how far the original was copied to out.
	copied int
	// scopes are the variables of the file and of the tables and chains around the
	// current place.
	scopes []map[string]variable
	// blocks are the braces around the current place: true where one has a scope.
	// Those that are nested too deeply to have one are counted alone.
	blocks  []bool
	tooDeep int
	// line is true at the beginning of a statement, scope in one that may open a
	// scope.
	line, scope bool
}

func (e *expander) next() {
	if e.tok.Kind != Newline {
		e.prev = e.tok
	}
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
	begins := e.line
	e.line = endsStatement(e.tok) || e.tok.Kind == Punct && e.tok.Text == "{"
	switch {
	case e.tok.Kind == Punct && e.tok.Text == "{":
		e.open()
	case e.tok.Kind == Punct && e.tok.Text == "}":
		e.close()
	case e.tok.Kind == Punct && e.tok.Text == "$":
		if !e.use() {
			return
		}
	case begins && e.tok.Kind == Ident:
		if word := e.tok.Text; word == "define" || word == "redefine" || word == "undefine" {
			e.define(word)
			return
		}
		// "add table" goes on with the noun.
		e.line = e.tok.Text == "add" || e.tok.Text == "create"
		e.scope = e.tok.Text == "table" || e.tok.Text == "chain"
	}
	if endsStatement(e.tok) {
		e.scope = false
	}
	e.next()
}

// endsStatement reports whether a statement ends at a token.
func endsStatement(t Token) bool {
	return t.Kind == EOF || t.Kind == Newline || t.Kind == Semicolon || t.Kind == Punct && t.Text == "}"
}

// open enters braces: those of a table or chain have a scope.
func (e *expander) open() {
	if len(e.blocks) >= MaxDepth {
		e.tooDeep++
		return
	}
	e.blocks = append(e.blocks, e.scope)
	if e.scope {
		e.scopes = append(e.scopes, nil)
	}
	e.scope = false
}

// close leaves braces.
func (e *expander) close() {
	n := len(e.blocks) - 1
	switch {
	case e.tooDeep > 0:
		e.tooDeep--
	case n >= 0:
		if e.blocks[n] {
			e.scopes = e.scopes[:len(e.scopes)-1]
		}
		e.blocks = e.blocks[:n]
	}
}

// use replaces the variable that begins at the current token, and reports whether
// there is one.
func (e *expander) use() bool {
	at, prev := e.tok.Offset, e.prev
	value, ok := e.variable()
	if !ok {
		return false
	}
	text := e.fit(value, prev)
	e.copyTo(at)
	e.pieces = append(e.pieces, piece{at: e.out.Len(), from: at, variable: true})
	e.out.WriteString(text)
	e.copied = e.tok.End
	if e.out.Len() > MaxFileLength {
		e.report(at, "variables expand to more than %d bytes", MaxFileLength)
		e.tok.Kind = EOF
		return false
	}
	return true
}

// fit writes a value as the place of its use needs it: the tokens around it must not
// become one with it, an operation stays one, elements of a set in a set are its own,
// and where nft takes a word the value may be in quotes.
func (e *expander) fit(v variable, prev Token) string {
	text := v.text
	if prev.Kind == Ident {
		switch prev.Text {
		case "jump", "goto", "policy", "priority":
			if inner, ok := strings.CutPrefix(text, `"`); ok && strings.IndexByte(inner, '"') == len(inner)-1 {
				text = strings.TrimSuffix(inner, `"`)
			}
		}
	}
	if v.set && isPunct(prev, "{", ",") && isPunct(e.peek(), "}", ",") {
		if inner := strings.Trim(text[1:len(text)-1], " ,"); inner != "" {
			text = inner
		}
	}
	if v.operation && (isOperation(prev) || isOperation(e.peek())) {
		text = "(" + text + ")"
	}
	if prev.End == e.tok.Offset-1 && (prev.Kind == Ident || prev.Kind == Number || prev.Kind == Word || prev.Kind == Addr) {
		text = " " + text
	}
	return text
}

// peek returns the token behind the current one that is no line end.
func (e *expander) peek() Token {
	sc := *e.sc
	for {
		t, err := sc.Next()
		if err != nil {
			return Token{}
		}
		if t.Kind != Newline {
			return t
		}
	}
}

// isPunct reports whether a token is one of some punctuation.
func isPunct(t Token, texts ...string) bool {
	return t.Kind == Punct && slices.Contains(texts, t.Text)
}

// isOperation reports whether a token is an operator on bits.
func isOperation(t Token) bool {
	switch t.Kind {
	case Punct:
		return slices.Contains([]string{"|", "&", "^", "<<", ">>"}, t.Text)
	case Ident:
		return slices.Contains([]string{"or", "and", "xor", "lshift", "rshift"}, t.Text)
	default:
		return false
	}
}

// variable reads the name behind a "$", which it leaves as the current token,
// and returns its value.
func (e *expander) variable() (variable, bool) {
	at := e.tok
	e.next()
	if e.tok.Kind != Ident || e.tok.Offset != at.End {
		e.report(at.Offset, "unexpected \"$\": want a variable such as $NAME")
		return variable{}, false
	}
	for i := len(e.scopes) - 1; i >= 0; i-- {
		if v, ok := e.scopes[i][e.tok.Text]; ok {
			return v, true
		}
	}
	e.report(at.Offset, "unknown variable $%s: define it before its use", e.tok.Text)
	return variable{}, true
}

// define takes a statement about a variable out of the text.
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

// undefinition reads "undefine NAME". That there is no such variable is no error, as
// in nft(8).
func (e *expander) undefinition() {
	e.next()
	if e.tok.Kind != Ident {
		e.report(e.tok.Offset, "unexpected %s: want the name of a variable", e.tok)
		e.skipStatement()
		return
	}
	delete(e.scopes[len(e.scopes)-1], e.tok.Text)
	if e.next(); !endsStatement(e.tok) {
		e.report(e.tok.Offset, "unexpected %s: want the end of the line or \";\"", e.tok)
		e.skipStatement()
	}
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
	known := slices.ContainsFunc(e.scopes, func(scope map[string]variable) bool { _, ok := scope[name.Text]; return ok })
	switch {
	case value.text == "":
		e.report(name.Offset, "variable %s has no value", name.Text)
	case known && !redefine:
		e.report(name.Offset, "variable %s is defined twice", name.Text)
	}
	scope := e.scopes[len(e.scopes)-1]
	if scope == nil {
		scope = map[string]variable{}
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
func (e *expander) value() variable {
	var (
		b strings.Builder
		v variable
	)
	v.set = isPunct(e.tok, "{")
	depth, end := 0, -1
	for e.tok.Kind != EOF {
		switch {
		case e.tok.Kind == Punct && (e.tok.Text == "{" || e.tok.Text == "("):
			depth++
		case e.tok.Kind == Punct && (e.tok.Text == "}" || e.tok.Text == ")"):
			depth--
		}
		if depth < 0 || depth == 0 && (e.tok.Kind == Newline || e.tok.Kind == Semicolon) {
			break
		}
		v.set = v.set && (depth > 0 || isPunct(e.tok, "}"))
		v.operation = v.operation || depth == 0 && isOperation(e.tok)
		text, at := e.src.original[e.tok.Offset:e.tok.End], e.tok.Offset
		if e.tok.Kind == Punct && e.tok.Text == "$" {
			prev := e.prev
			used, ok := e.variable()
			if !ok {
				continue
			}
			v.operation = v.operation || depth == 0 && used.operation
			v.set = v.set || used.set && b.Len() == 0 && depth == 0
			text = e.fit(used, prev)
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
	v.text = b.String()
	return v
}
