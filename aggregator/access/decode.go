package access

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxFile is the largest file in bytes, far beyond a hand-written one.
	maxFile = 1 << 20
	// maxProblems is the number of problems that one error lists.
	maxProblems = 100
)

// Problem is one error in a file.
type Problem struct {
	// counts from 1; 0 is the whole file
	Line int
	// names the field, the error, and the remedy
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

// Read returns the content of a file. It reads little more than the maximum size, which Document
// checks.
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

// Problems collects the errors in a file. A path names a field in messages, such as
// "publishers[2].match".
type Problems struct{ list []Problem }

// Add adds a problem with a field. The path may be empty.
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

// Err returns a *FileError with the problems, or nil if there are none.
func (p *Problems) Err(file string) error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &FileError{File: file, Problems: p.list}
}

// yamlLine finds the line in an error of the YAML parser, which has it only in its text.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// Document returns the root of the only YAML document in data. On failure it adds a problem and
// returns nil.
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
	return doc.Content[0]
}

// field handles the value of a field. The path is the path of the value.
type field func(path string, value *yaml.Node)

// reader reads a value and reports whether it is valid.
type reader[T any] func(path string, value *yaml.Node) (T, bool)

// into stores a valid value.
func into[T any](to *T, read reader[T]) field {
	return func(path string, n *yaml.Node) {
		if v, ok := read(path, n); ok {
			*to = v
		}
	}
}

// pointer is into for an optional value.
func pointer[T any](to **T, read reader[T]) field {
	return func(path string, n *yaml.Node) {
		if v, ok := read(path, n); ok {
			*to = &v
		}
	}
}

// listOf stores the valid entries of a list.
func listOf[T any](p *parser, to *[]T, read reader[T]) field {
	return func(path string, n *yaml.Node) {
		*to = []T{}
		if !p.is(path, n, yaml.SequenceNode, "a list") {
			return
		}
		for i, entry := range n.Content {
			if v, ok := read(fmt.Sprintf("%s[%d]", path, i), entry); ok {
				*to = append(*to, v)
			}
		}
	}
}

// mapping calls the fields in a mapping and returns their lines by name, or nil if the node is not
// a mapping.
func (p *parser) mapping(path string, n *yaml.Node, fields map[string]field) map[string]int {
	if !p.is(path, n, yaml.MappingNode, "a mapping of fields") {
		return nil
	}
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		sub := name
		if path != "" {
			sub = path + "." + name
		}
		f, known := fields[name]
		switch {
		case key.Kind != yaml.ScalarNode || !known:
			p.Add(key.Line, path, "unknown field %q: want %s", clip(name), strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		case lines[name] != 0:
			p.Add(key.Line, sub, "the field is there twice, also in line %d: remove one", lines[name])
		default:
			lines[name] = key.Line
			f(sub, value)
		}
	}
	return lines
}

// is reports whether a node is of a kind.
func (p *parser) is(path string, n *yaml.Node, kind yaml.Kind, want string) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.Add(n.Line, path, "anchors and aliases are not read: write the value out")
	case n.Tag == "!!null":
		p.Add(n.Line, path, "the value is missing: want %s, or leave the field out", want)
	case n.Kind != kind:
		p.Add(n.Line, path, "got %s: want %s", describe(n), want)
	default:
		return true
	}
	return false
}

// describe names the kind of a node.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return fmt.Sprintf("%q", clip(n.Value))
	}
}

// scalar returns a scalar parsed by parse.
func scalar[T any](p *parser, path string, n *yaml.Node, want string, parse func() (T, bool)) (v T, ok bool) {
	if !p.is(path, n, yaml.ScalarNode, want) {
		return v, false
	}
	if v, ok = parse(); !ok {
		p.Add(n.Line, path, "got %s: want %s", describe(n), want)
	}
	return v, ok
}

// text reads a string accepted by parse.
func text[T any](p *parser, want string, parse func(string) (T, error)) reader[T] {
	return func(path string, n *yaml.Node) (v T, ok bool) {
		s, ok := scalar(p, path, n, want, func() (string, bool) { return n.Value, n.Tag == "!!str" && n.Value != "" })
		if !ok {
			return v, false
		}
		v, err := parse(s)
		if err != nil {
			p.Add(n.Line, path, "%v", err)
		}
		return v, err == nil
	}
}

// checked returns a parse function that accepts valid text.
func checked(check func(string) error) func(string) (string, error) {
	return func(s string) (string, error) { return s, check(s) }
}

// number reads a whole decimal number from least to most.
func number[T int | int32 | uint32](p *parser, least, most int64) reader[T] {
	return func(path string, n *yaml.Node) (T, bool) {
		return scalar(p, path, n, fmt.Sprintf("a whole number from %d to %d", least, most), func() (T, bool) {
			v, err := decimal(n.Value)
			return T(v), n.Tag == "!!int" && err == nil && v >= least && v <= most //nolint:gosec // in range
		})
	}
}

// decimal parses a number as people read it: 010 is neither eight nor ten.
func decimal(text string) (int64, error) {
	digits := strings.TrimPrefix(text, "-")
	if len(digits) > 1 && digits[0] == '0' || strings.HasPrefix(text, "+") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(text, 10, 64)
}

func (p *parser) truth(path string, n *yaml.Node) (bool, bool) {
	return scalar(p, path, n, "true or false", func() (bool, bool) {
		return n.Value == "true", n.Tag == "!!bool" && (n.Value == "true" || n.Value == "false")
	})
}
