package access

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// bytes, far beyond a hand-written file
	maxFile     = 1 << 20
	maxProblems = 100
)

// Problem is one error in a file.
type Problem struct {
	// from 1; 0 is the whole file
	Line int
	// the field, the error, and the remedy
	Text string
}

// FileError has all errors in a file.
type FileError struct {
	File string
	// at least one, in the order of the file
	Problems []Problem
}

// Error returns a line "file:line: text" for each problem.
func (e *FileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		if p.Line == 0 {
			lines[i] = e.File + ": " + p.Text
		} else {
			lines[i] = fmt.Sprintf("%s:%d: %s", e.File, p.Line, p.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns ErrConfig.
func (e *FileError) Unwrap() error { return ErrConfig }

// Read reads a file, up to one byte more than Document accepts.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator's file
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return data, nil
}

// Problems collects the errors in a file.
type Problems struct{ list []Problem }

// Add adds a problem with a field by its path, such as "publishers[2].match", or "".
func (p *Problems) Add(line int, path, format string, args ...any) {
	if len(p.list) >= maxProblems {
		return
	}
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	p.list = append(p.list, Problem{line, text})
}

// Err returns a *FileError, or nil without problems.
func (p *Problems) Err(file string) error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &FileError{File: file, Problems: p.list}
}

// The line is only in the text of the parser's error.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// Document returns the root of the only YAML document in data, of an apiVersion and kind. On
// failure it adds a problem and returns nil.
func (p *Problems) Document(data []byte, apiVersion, kind string) *yaml.Node {
	if len(data) > maxFile {
		p.Add(0, "", "the file has %d bytes: at most %d are read", len(data), maxFile)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		p.Add(0, "", "the file is empty: begin it with apiVersion: %s and kind: %s", apiVersion, kind)
		return nil
	case err == nil:
		if err = dec.Decode(&more); err == nil {
			p.Add(more.Line, "", "there is a second document: put everything into one")
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		line, text := 0, err.Error()
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(m[1])
			text = m[2]
		}
		p.Add(line, "", "%s", text)
		return nil
	}
	root := doc.Content[0]
	got := make(map[string]string)
	for i := 0; i+1 < len(root.Content) && root.Kind == yaml.MappingNode; i += 2 {
		got[root.Content[i].Value] = root.Content[i+1].Value
	}
	if root.Kind == yaml.MappingNode && (got["apiVersion"] != apiVersion || got["kind"] != kind) {
		p.Add(root.Line, "", "got apiVersion %q and kind %q: want apiVersion %s and kind %s", clip(got["apiVersion"]), clip(got["kind"]), apiVersion, kind)
		return nil
	}
	return root
}
