package kubeproxy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
	"k8s.io/kube-proxy/config/v1alpha1"

	"github.com/weft-proxy/weft/aggregator/access"
)

// The apiVersion and kind of a file.
const (
	APIVersion = v1alpha1.GroupName + "/v1alpha1"
	Kind       = "KubeProxyConfiguration"
)

// maxFile is the maximum size of a file in bytes.
const maxFile = 1 << 20

// KindOf returns the kind in a file. It is empty if the file has none, cannot be read or
// is not YAML: reading the file as a configuration reports that.
func KindOf(file string) string {
	data, err := read(file)
	if err != nil {
		return ""
	}
	var head struct {
		Kind string `yaml:"kind"`
	}
	if yaml.Unmarshal(data, &head) != nil {
		// A file with a repeated field still has a kind.
		if m := kindLine.FindSubmatch(data); m != nil {
			return string(m[1])
		}
	}
	return head.Kind
}

var kindLine = regexp.MustCompile(`(?m)^"?kind"?:\s*"?(\w+)"?\s*,?\s*$`)

func read(file string) ([]byte, error) {
	f, err := os.Open(file) //nolint:gosec // the operator's file
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read configuration %s: it has more than %d bytes", file, maxFile)
	}
	return data, nil
}

// document is a decoded file.
type document struct {
	file   string
	data   []byte
	config v1alpha1.KubeProxyConfiguration
	decoder
}

// parse decodes the configuration in a file. It sets no defaults and does not validate
// values.
//
// Possible errors: an *access.FileError.
func parse(file string, data []byte) (*document, error) {
	doc := &document{file: file, data: data, decoder: decoder{lines: make(map[string]int)}}
	if root := doc.root(); root != nil {
		doc.value("", root, reflect.ValueOf(&doc.config).Elem())
		got := [2]string{doc.config.APIVersion, doc.config.Kind}
		if len(doc.problems) == 0 && got != [2]string{APIVersion, Kind} {
			doc.problem(root.Line, "", "got apiVersion %q and kind %q: want apiVersion %s and kind %s", got[0], got[1], APIVersion, Kind)
		}
	}
	return doc, doc.err()
}

// err returns the collected problems, or nil.
func (d *document) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b access.Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &access.FileError{File: d.file, Problems: d.problems}
}

// yamlLine matches the errors of the YAML parser, which have no type with the line.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// root returns the only document of the file; nil if there is an error.
func (d *document) root() *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(d.data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		d.problem(0, "", "the file is empty: start it with apiVersion: %s and kind: %s", APIVersion, Kind)
		return nil
	}
	if err == nil {
		if err = dec.Decode(&more); err == nil {
			d.problem(more.Line, "", "the file has a second document: put everything into one")
			return nil
		}
	}
	if !errors.Is(err, io.EOF) {
		line, text := 0, err.Error()
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(m[1])
			text = m[2]
		}
		d.problem(line, "", "%s", text)
		return nil
	}
	return doc.Content[0]
}
