package ruleset

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

// MaxLength applies to all files together.
const (
	// MaxIncludeDepth is the deepest nesting of includes, as in nft(8).
	MaxIncludeDepth = 16
	// MaxIncludes is the most included files.
	MaxIncludes = 1024
)

// SourceFile is an included file.
type SourceFile struct{ Name, Text string }

// OpenFunc returns the files that match an include pattern in file from. Wildcards may match no
// file; a missing name without wildcards should be an error.
type OpenFunc func(from, pattern string) ([]SourceFile, error)

// Bundle is a file with replaced include statements, but with variables.
type Bundle struct {
	// the including file
	Name string
	Text string
	// origins of Text, in order
	pieces pieces
	files  []*source
}

// Include replaces the include statements by the files from open. The *ErrorList has an error of
// open at the statement.
func Include(name, text string, open OpenFunc) (*Bundle, error) {
	i := &includer{open: open, bundle: &Bundle{Name: name}}
	i.file(name, text, 0)
	i.bundle.Text, i.bundle.pieces = i.out.String(), i.out.pieces
	if len(i.errs) > 0 {
		return nil, &ErrorList{name, i.errs}
	}
	return i.bundle, nil
}

// Parse calls a function such as Parse, and converts the places in its *ErrorList.
func (b *Bundle) Parse(parse func(name, text string) ([]nft.Table, error)) ([]nft.Table, error) {
	tables, err := parse(b.Name, b.Text)
	var list *ErrorList
	if errors.As(err, &list) {
		for _, e := range list.Errors {
			if e.Pos.IsValid() {
				e.File, e.Pos, e.Line = b.Place(e.Pos)
			}
		}
	}
	return tables, err
}

// Place converts a place in Text to a file (empty for the including file), a place there, and its
// line. A place after Text becomes the end.
func (b *Bundle) Place(pos syntax.Pos) (file string, at syntax.Pos, line string) {
	whole := source{text: b.Text}
	offset := whole.offsetOf(0, pos)
	if len(b.files) == 0 {
		return "", pos, syntax.SourceLine(b.Text, pos.Line)
	}
	p := b.pieces.at(offset)
	e := b.files[p.file].errorAt(p.from+offset-p.at, "")
	if p.file > 0 {
		file = b.files[p.file].name
	}
	return file, e.Pos, e.Line
}

type includer struct {
	open   OpenFunc
	bundle *Bundle
	out    splice
	errs   []*syntax.Error
}

type includedFile struct {
	number, depth int
	text          string
	sc            *scan.Scanner
	tok           scan.Token
	copied        int
}

// The parser reports illegal tokens later.
func (f *includedFile) next() { f.tok = f.sc.Next() }

func (i *includer) file(name, text string, depth int) {
	f := &includedFile{number: len(i.bundle.files), depth: depth, text: text, sc: scan.New(text)}
	i.bundle.files = append(i.bundle.files, &source{name: name, text: text, original: text})
	if strings.Contains(text, "include") {
		i.statements(f)
	}
	i.copy(f, len(text))
}

func (i *includer) statements(f *includedFile) {
	begins := true
	for f.next(); f.tok.Kind != scan.EOF && len(i.errs) < MaxErrors; f.next() {
		if begins && f.tok.IsWord("include") {
			i.include(f)
		}
		begins = f.tok.EndsStatement() || f.tok.Is("{")
	}
}

// include stops at the token after the statement.
func (i *includer) include(f *includedFile) {
	at := f.tok.Offset
	f.next()
	pattern := f.tok
	if pattern.Kind != scan.String {
		i.report(f, pattern.Offset, fmt.Sprintf("unexpected %s: want the name of a file in double quotes", pattern))
		return
	}
	if f.next(); !f.tok.EndsStatement() {
		i.report(f, f.tok.Offset, fmt.Sprintf("unexpected %s: want the end of the line or \";\"", f.tok))
		return
	}
	i.copy(f, at)
	f.copied = pattern.End
	if f.depth >= MaxIncludeDepth {
		i.report(f, at, fmt.Sprintf("include %q: files are included more than %d levels deep", pattern.Text, MaxIncludeDepth))
		return
	}
	files, err := i.open(i.bundle.files[f.number].name, pattern.Text)
	if err != nil {
		i.report(f, at, fmt.Sprintf("include %q: %s", pattern.Text, err))
		return
	}
	for _, file := range files {
		if len(i.bundle.files) > MaxIncludes || i.out.Len()+len(file.Text) > MaxLength {
			i.report(f, at, fmt.Sprintf("include %q: want at most %d files, of %d bytes together", pattern.Text, MaxIncludes, MaxLength))
			return
		}
		i.file(file.Name, file.Text, f.depth+1)
		// The last line may lack its end.
		i.out.WriteByte('\n')
	}
}

func (i *includer) copy(f *includedFile, offset int) {
	i.out.add(f.text[f.copied:offset], piece{file: f.number, from: f.copied})
	f.copied = offset
}

func (i *includer) report(f *includedFile, offset int, msg string) {
	if len(i.errs) >= MaxErrors {
		return
	}
	file := i.bundle.files[f.number]
	e := file.errorAt(offset, msg)
	if f.number > 0 {
		e.File = file.name
	}
	i.errs = append(i.errs, e)
}
