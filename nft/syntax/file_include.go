package syntax

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// The bounds of includes.
const (
	// MaxIncludeDepth is how deep files may include one another, as in nft(8).
	MaxIncludeDepth = 16
	// MaxIncludes is how many files may be included.
	MaxIncludes = 1024
)

// SourceFile is a file that another one includes.
type SourceFile struct{ Name, Text string }

// OpenFunc finds the files that an include statement of the file from asks for; a
// pattern with wildcards may match none.
type OpenFunc func(from, pattern string) ([]SourceFile, error)

// Bundle is a file with those that it includes in their places: one text, which needs
// no other file.
type Bundle struct {
	// Name is that of the file which includes the others.
	Name string
	Text string
	// pieces tell where parts of Text come from, in order.
	pieces []bundlePiece
	files  []bundleFile
}

// bundlePiece says that the text from offset at comes from a file's offset from.
type bundlePiece struct{ at, file, from int }

// bundleFile is one of the files of a bundle.
type bundleFile struct {
	name string
	src  *source
}

// Include reads a file's include statements and puts what open finds in their places.
// The package itself reads no file. Errors of open are at the place of the statement;
// the error is an *ErrorList.
func Include(name, text string, open OpenFunc) (*Bundle, error) {
	i := &includer{open: open, bundle: &Bundle{Name: name}}
	i.file(name, text, 0)
	i.bundle.Text = i.out.String()
	if len(i.errs) > 0 {
		return nil, &ErrorList{name, i.errs}
	}
	return i.bundle, nil
}

// Parse parses the bundle with a function such as ParseFile. Its errors name the files
// and the places in them.
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

// Place returns the place of a file that a place of Text comes from, and its line.
// The name is empty for the file that includes the others.
func (b *Bundle) Place(pos Pos) (file string, at Pos, line string) {
	whole := source{text: b.Text}
	offset := whole.offsetOf(0, pos)
	i := sort.Search(len(b.pieces), func(i int) bool { return b.pieces[i].at > offset }) - 1
	if i < 0 {
		return "", pos, SourceLine(b.Text, pos.Line)
	}
	p := b.pieces[i]
	e := b.files[p.file].src.errorAt(p.from+offset-p.at, "")
	if p.file > 0 {
		file = b.files[p.file].name
	}
	return file, e.Pos, e.Line
}

// includer puts a bundle together.
type includer struct {
	open   OpenFunc
	bundle *Bundle
	out    strings.Builder
	errs   []*Error
}

// includedFile is a file while its include statements are looked for.
type includedFile struct {
	number, depth int
	text          string
	sc            *Scanner
	tok           Token
	copied        int
}

// next reads a token. What the scanner refuses ends the line; the parser reports it.
func (f *includedFile) next() {
	var err *Error
	if f.tok, err = f.sc.Next(); err == nil {
		return
	}
	f.tok.Kind = Newline
	if n := strings.IndexByte(f.text[f.sc.off:], '\n'); n >= 0 {
		f.sc.off += n
	} else {
		f.sc.off = len(f.text)
	}
}

// file appends a file with the files that it includes.
func (i *includer) file(name, text string, depth int) {
	f := &includedFile{number: len(i.bundle.files), depth: depth, text: text, sc: NewScanner(text)}
	i.bundle.files = append(i.bundle.files, bundleFile{name, &source{text: text, original: text}})
	if strings.Contains(text, "include") {
		i.statements(f)
	}
	i.copy(f, len(text))
}

// statements looks for include at the beginning of statements.
func (i *includer) statements(f *includedFile) {
	begins := true
	for f.next(); f.tok.Kind != EOF && len(i.errs) < MaxErrors; f.next() {
		if begins && f.tok.Kind == Ident && f.tok.Text == "include" {
			i.include(f)
		}
		begins = endsStatement(f.tok) || f.tok.Kind == Punct && f.tok.Text == "{"
	}
}

// include replaces an include statement by what it asks for, and leaves its end as the
// current token.
func (i *includer) include(f *includedFile) {
	at := f.tok.Offset
	f.next()
	pattern := f.tok
	if pattern.Kind != String {
		i.report(f, pattern.Offset, fmt.Sprintf("unexpected %s: want the name of a file in double quotes", pattern))
		return
	}
	if f.next(); !endsStatement(f.tok) {
		i.report(f, f.tok.Offset, fmt.Sprintf("unexpected %s: want the end of the line or \";\"", f.tok))
		return
	}
	i.copy(f, at)
	f.copied = pattern.End
	if f.depth >= MaxIncludeDepth {
		i.report(f, at, fmt.Sprintf("include %q: files include one another more than %d levels deep", pattern.Text, MaxIncludeDepth))
		return
	}
	files, err := i.open(i.bundle.files[f.number].name, pattern.Text)
	if err != nil {
		i.report(f, at, fmt.Sprintf("include %q: %s", pattern.Text, err))
		return
	}
	for _, file := range files {
		if len(i.bundle.files) > MaxIncludes || i.out.Len()+len(file.Text) > MaxFileLength {
			i.report(f, at, fmt.Sprintf("include %q: want at most %d files, of %d bytes together", pattern.Text, MaxIncludes, MaxFileLength))
			return
		}
		i.file(file.Name, file.Text, f.depth+1)
		// The last statement may have no end.
		i.out.WriteByte('\n')
	}
}

// copy appends a file's text up to an offset.
func (i *includer) copy(f *includedFile, offset int) {
	i.bundle.pieces = append(i.bundle.pieces, bundlePiece{at: i.out.Len(), file: f.number, from: f.copied})
	i.out.WriteString(f.text[f.copied:offset])
	f.copied = offset
}

// report records an error at an offset of a file.
func (i *includer) report(f *includedFile, offset int, msg string) {
	if len(i.errs) >= MaxErrors {
		return
	}
	file := i.bundle.files[f.number]
	e := file.src.errorAt(offset, msg)
	if f.number > 0 {
		e.File = file.name
	}
	i.errs = append(i.errs, e)
}
