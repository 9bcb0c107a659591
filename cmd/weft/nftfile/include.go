package nftfile

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
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/syntax"
)

// IncludePath lists the directories for included files, searched after the including file's own.
type IncludePath []string

// AddFlag adds --include-path (-I), by default /etc.
func (p *IncludePath) AddFlag(flags *pflag.FlagSet) {
	flags.StringArrayVarP((*[]string)(p), "include-path", "I", []string{"/etc"}, "directory in which to look for included files")
}

// Read returns a file with its included files. It parses only a text with includes.
func (p IncludePath) Read(stdin io.Reader, path string) (*ruleset.Bundle, error) {
	text, err := Read(stdin, path)
	if err != nil {
		return nil, err
	}
	return p.bundle(path, text)
}

// Expand is Read for text, with includes from the current directory.
func (p IncludePath) Expand(text string) (string, error) {
	bundle, err := p.bundle("-", text)
	if err != nil {
		return "", err
	}
	return bundle.Text, nil
}

func (p IncludePath) bundle(path, text string) (*ruleset.Bundle, error) {
	bundle, err := ruleset.Include(path, text, p.Open)
	if err == nil && bundle.Text != text {
		_, err = bundle.Parse(json.ParseFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read fragment: %w", withExcerpts(err))
	}
	return bundle, nil
}

// Open reads included files from the including file's directory and, unless the name begins with
// "./" or "../", the include path. A name is the first existing file, a pattern all matching files,
// sorted by name in each directory.
func (p IncludePath) Open(from, pattern string) ([]ruleset.SourceFile, error) {
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
	var files []ruleset.SourceFile
	for _, dir := range dirs {
		paths, err := includedPaths(filepath.Join(dir, pattern), wild)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := Read(nil, path)
			if err != nil {
				return nil, err
			}
			files = append(files, ruleset.SourceFile{Name: path, Text: text})
		}
		if len(files) > 0 && !wild {
			break
		}
	}
	if len(files) == 0 && !wild {
		if filepath.IsAbs(pattern) {
			return nil, errors.New("no such file")
		}
		return nil, fmt.Errorf("no such file in %s", strings.Join(dirs, ", "))
	}
	return files, nil
}

// includedPaths leaves out directories; the list may be empty.
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
		// As in a shell, wildcards do not match hidden files.
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

func withExcerpts(err error) error {
	var list *ruleset.ErrorList
	if !errors.As(err, &list) {
		return err
	}
	var lines []string
	for _, err := range list.Errors {
		one := &ruleset.ErrorList{Name: list.Name, Errors: []*syntax.Error{err}}
		lines = append(lines, one.Error())
		for line := range strings.Lines(err.Excerpt()) {
			lines = append(lines, "  "+strings.TrimRight(line, "\n"))
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}

// Locate changes places in the text of b, which may be nil, to places in the included files.
func Locate(b *ruleset.Bundle, violations []*weftv1.Violation) {
	for _, v := range violations {
		if b == nil || v.GetLine() == 0 {
			continue
		}
		file, pos, _ := b.Place(syntax.Pos{Line: int(v.GetLine()), Column: int(v.GetColumn())})
		v.Line, v.Column = uint32(pos.Line), uint32(pos.Column)
		if file != "" {
			v.Message = file + ": " + v.GetMessage()
		}
	}
}

// LocateError calls Locate for a *client.RejectedError, and returns err.
func LocateError(b *ruleset.Bundle, err error) error {
	var rejected *client.RejectedError
	if errors.As(err, &rejected) {
		Locate(b, rejected.Violations)
	}
	return err
}
