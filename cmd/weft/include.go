package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/nft/json"
	"github.com/weft-proxy/weft/nft/syntax"
)

// includePath is where files are looked for that other files include, behind the
// directory of the file that includes them.
type includePath []string

// addFlag adds the flag, with the default of nft(8).
func (p *includePath) addFlag(flags *pflag.FlagSet) {
	flags.StringArrayVarP((*[]string)(p), "include-path", "I", []string{"/etc"}, "a directory of files that other files include")
}

// read reads a file with those that it includes: the daemon reads none. A mistake in
// the text is the daemon's to find, but for that of a file with includes, whose places
// it could not tell.
func (p includePath) read(stdin io.Reader, path string) (*syntax.Bundle, error) {
	text, err := readFile(stdin, path)
	if err != nil {
		return nil, err
	}
	return p.bundle(path, text)
}

// expand is read for text that comes from no file; its includes are looked for in the
// current directory.
func (p includePath) expand(text string) (string, error) {
	bundle, err := p.bundle("-", text)
	if err != nil {
		return "", err
	}
	return bundle.Text, nil
}

// bundle puts the files in that a text includes.
func (p includePath) bundle(path, text string) (*syntax.Bundle, error) {
	bundle, err := syntax.Include(path, text, p.open)
	if err != nil {
		return nil, fmt.Errorf("read fragment: %w", withExcerpts(err))
	}
	if bundle.Text != text {
		if _, err := bundle.Parse(json.ParseFile); err != nil {
			return nil, fmt.Errorf("read fragment: %w", withExcerpts(err))
		}
	}
	return bundle, nil
}

// open finds included files: in the directory of the file that includes them, and
// where the name does not begin with a dot in the include path too. Of a pattern all
// that match are read, by name.
func (p includePath) open(from, pattern string) ([]syntax.SourceFile, error) {
	dirs := []string{""}
	if !filepath.IsAbs(pattern) {
		dirs[0] = "."
		if from != "-" {
			dirs[0] = filepath.Dir(from)
		}
		if !strings.HasPrefix(pattern, "./") && !strings.HasPrefix(pattern, "../") {
			dirs = append(dirs, p...)
		}
	}
	wild := strings.ContainsAny(pattern, "*?[")
	var files []syntax.SourceFile
	for _, dir := range dirs {
		paths, err := includedPaths(filepath.Join(dir, pattern), wild)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := readFile(nil, path)
			if err != nil {
				return nil, err
			}
			files = append(files, syntax.SourceFile{Name: path, Text: text})
		}
		if len(files) > 0 && !wild {
			break
		}
	}
	if len(files) == 0 && !wild {
		return nil, fmt.Errorf("no such file in %s", strings.Join(dirs, ", "))
	}
	return files, nil
}

// includedPaths returns the files of a path or, where wild is true, of a pattern:
// nothing for none, and no directories.
func includedPaths(pattern string, wild bool) ([]string, error) {
	paths := []string{pattern}
	if wild {
		var err error
		if paths, err = filepath.Glob(pattern); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	var out []string
	for _, path := range paths {
		// As in a shell, wildcards find no hidden files.
		if wild && strings.HasPrefix(filepath.Base(path), ".") && !strings.HasPrefix(filepath.Base(pattern), ".") {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case !info.IsDir():
			out = append(out, path)
		}
	}
	return out, nil
}

// excerptError shows the lines that a file's errors are about.
type excerptError struct{ list *syntax.ErrorList }

// Error returns all errors, each with its line and a caret.
func (e *excerptError) Error() string {
	var b strings.Builder
	for i, err := range e.list.Errors {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString((&syntax.ErrorList{Name: e.list.Name, Errors: []*syntax.Error{err}}).Error())
		for line := range strings.Lines(err.Excerpt()) {
			b.WriteString("\n  " + strings.TrimRight(line, "\n"))
		}
	}
	return b.String()
}

// Unwrap returns the errors.
func (e *excerptError) Unwrap() error { return e.list }

func withExcerpts(err error) error {
	var list *syntax.ErrorList
	if errors.As(err, &list) {
		return &excerptError{list}
	}
	return err
}

// locate makes the places of violations those of the included files.
func locate(b *syntax.Bundle, violations []*weftv1.Violation) {
	for _, v := range violations {
		if v.GetLine() == 0 {
			continue
		}
		file, pos, _ := b.Place(syntax.Pos{Line: int(v.GetLine()), Column: int(v.GetColumn())})
		v.Line, v.Column = uint32(pos.Line), uint32(pos.Column)
		if file != "" {
			v.Message = file + ": " + v.GetMessage()
		}
	}
}

// locateError is locate for a fragment that was rejected.
func locateError(b *syntax.Bundle, err error) error {
	var rejected *client.RejectedError
	if errors.As(err, &rejected) {
		locate(b, rejected.Violations)
	}
	return err
}
