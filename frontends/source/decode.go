package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// maxManifest is the greatest manifest file: far beyond what is written by hand
// or by a generator, and small enough to be read into memory.
const maxManifest = 64 << 20

// FileError is what is wrong in a manifest.
type FileError struct {
	// File is the file's name, Line counts from 1; 0 means the whole file.
	File string
	Line int
	// Err says what is wrong.
	Err error
}

// Error returns "file:line: what".
func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }

// identity names an object among all kinds.
type identity struct{ kind, namespace, name string }

func (id identity) String() string {
	if id.namespace == "" {
		return id.kind + " " + id.name
	}
	return id.kind + " " + id.namespace + "/" + id.name
}

// object is one decoded object of a file.
type object struct {
	id   identity
	line int
	// text is the canonical JSON that it was decoded from: equal text means
	// equal objects.
	text string
	set  Event
	gone Event
}

// skipped is an object of a kind that is none of ours.
type skipped struct {
	line int
	kind string
}

// decoder decodes one file.
type decoder struct {
	file    string
	strict  runtime.Decoder
	objects []object
	skipped []skipped
	seen    map[identity]int
}

// decode returns the objects of a manifest file, which may have several
// documents, lists too. The whole file is good, or it is an error, a *FileError
// (several joined): a part of what its author meant may be worse than what was
// there before.
func decode(file string, content []byte) ([]object, []skipped, error) {
	d := &decoder{
		file: file,
		strict: json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
			json.SerializerOptions{Strict: true}),
		seen: make(map[identity]int),
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, nil, &FileError{File: file, Err: errors.New("the file is empty: remove it to remove its objects")}
	}
	var errs []error
	for line, doc := range documents(content) {
		if err := d.document(line, doc); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return d.objects, d.skipped, nil
}

// documents yields each document with the line before its first one.
func documents(content []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		start, from, n := 0, 0, 0
		for at := 0; at < len(content); {
			end := bytes.IndexByte(content[at:], '\n')
			next := len(content)
			if end >= 0 {
				next = at + end + 1
			}
			if line := content[at:next]; bytes.HasPrefix(line, []byte("---")) && (len(bytes.TrimSpace(line)) == 3 || line[3] == ' ') {
				if !yield(from, content[start:at]) {
					return
				}
				// What follows the marker on its own line is content.
				start, from = at+3, n
			}
			at = next
			n++
		}
		yield(from, content[start:])
	}
}

// document decodes one document, which begins after so many lines.
func (d *decoder) document(before int, doc []byte) error {
	var root yamlv3.Node
	if err := yamlv3.NewDecoder(bytes.NewReader(doc)).Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return d.errorf(before, yamlLine(err), errors.New(yamlText(err)))
	}
	if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return nil
	}
	text, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return d.errorf(before, yamlLine(err), errors.New(yamlText(err)))
	}
	return d.value(before, root.Content[0], text)
}

// value decodes one object, or the items of a list.
func (d *decoder) value(before int, node *yamlv3.Node, text []byte) error {
	var meta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	line := before + node.Line
	if err := yaml.Unmarshal(text, &meta); err != nil || meta.Kind == "" || meta.APIVersion == "" {
		return &FileError{File: d.file, Line: line, Err: errors.New("not a Kubernetes object: apiVersion or kind is missing")}
	}
	gv, err := schema.ParseGroupVersion(meta.APIVersion)
	if err != nil {
		return &FileError{File: d.file, Line: d.lineOf(before, node, "apiVersion"), Err: err}
	}
	kind := gv.WithKind(meta.Kind)
	if strings.HasSuffix(kind.Kind, "List") && (ours(kind, strings.TrimSuffix(kind.Kind, "List")) || kind == corev1.SchemeGroupVersion.WithKind("List")) {
		return d.list(before, node)
	}
	if !ours(kind, kind.Kind) {
		if !scheme.Scheme.Recognizes(kind) && slices.Contains(ourGroups(), kind.Group) {
			return &FileError{File: d.file, Line: d.lineOf(before, node, "kind"), Err: fmt.Errorf("unknown kind %s of %s", kind.Kind, meta.APIVersion)}
		}
		d.skipped = append(d.skipped, skipped{line: line, kind: meta.APIVersion + " " + meta.Kind})
		return nil
	}
	decoded, _, err := d.strict.Decode(text, nil, nil)
	if err != nil {
		return d.decodeErrors(before, node, err)
	}
	return d.add(before, node, decoded, string(text))
}

// ourGroups are the API groups of the kinds that the frontend follows: a kind of
// theirs that does not exist is a slip.
func ourGroups() []string {
	return []string{corev1.GroupName, discoveryv1.GroupName, networkingv1.GroupName}
}

// ours reports whether a kind is one that the frontend follows.
func ours(k schema.GroupVersionKind, kind string) bool {
	switch k.GroupVersion() {
	case corev1.SchemeGroupVersion:
		return kind == "Service" || kind == "Node"
	case discoveryv1.SchemeGroupVersion:
		return kind == "EndpointSlice"
	case networkingv1.SchemeGroupVersion:
		return kind == "ServiceCIDR"
	}
	return false
}

// list decodes the items of a list.
func (d *decoder) list(before int, node *yamlv3.Node) error {
	items := child(node, "items")
	if items == nil || items.Kind != yamlv3.SequenceNode {
		return &FileError{File: d.file, Line: before + node.Line, Err: errors.New("the list has no items")}
	}
	var errs []error
	for _, item := range items.Content {
		raw, err := yamlv3.Marshal(item)
		if err == nil {
			raw, err = yaml.YAMLToJSONStrict(raw)
		}
		if err == nil {
			err = d.value(before, item, raw)
		} else {
			err = &FileError{File: d.file, Line: before + item.Line, Err: errors.New(yamlText(err))}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// add checks what every use of an object needs, and keeps it.
func (d *decoder) add(before int, node *yamlv3.Node, decoded runtime.Object, text string) error {
	o := object{line: before + node.Line, text: text}
	var missing string
	switch v := decoded.(type) {
	case *corev1.Service:
		missing = d.service(v, &o)
	case *discoveryv1.EndpointSlice:
		missing = d.slice(v, &o)
	case *corev1.Node:
		o.id = identity{kind: "Node", name: v.Name}
		o.set, o.gone = NodeSet{v}, NodeGone{v.Name}
	case *networkingv1.ServiceCIDR:
		missing = d.serviceCIDR(v, &o)
	default:
		return &FileError{File: d.file, Line: o.line, Err: fmt.Errorf("unexpected object %T", decoded)}
	}
	if o.id.name == "" {
		missing = "metadata.name"
	}
	if missing != "" {
		return &FileError{File: d.file, Line: o.line, Err: fmt.Errorf("%s: %s is missing: the file may be only partly written", o.id, missing)}
	}
	if first, twice := d.seen[o.id]; twice {
		return &FileError{File: d.file, Line: o.line, Err: fmt.Errorf("%s is already in line %d of this file", o.id, first)}
	}
	d.seen[o.id] = o.line
	d.objects = append(d.objects, o)
	return nil
}

var (
	// jsonField finds the field in what encoding/json says of a wrong type.
	jsonField = regexp.MustCompile(`Go struct field [A-Za-z0-9]+\.([A-Za-z0-9_.]+) of type`)
	// strictField finds the field in what the strict decoder says.
	strictField = regexp.MustCompile(`^(?:unknown|duplicate) field "([^"]+)"`)
	// yamlPosition finds the line in what the YAML parsers say.
	yamlPosition = regexp.MustCompile(`line (\d+): ?`)
)

// decodeErrors gives each error of the decoder its line.
func (d *decoder) decodeErrors(before int, node *yamlv3.Node, err error) error {
	all := []error{err}
	if s, ok := runtime.AsStrictDecodingError(err); ok {
		all = s.Errors()
	}
	out := make([]error, len(all))
	for i, e := range all {
		path := ""
		if m := strictField.FindStringSubmatch(e.Error()); m != nil {
			path = m[1]
		} else if m := jsonField.FindStringSubmatch(e.Error()); m != nil {
			path = m[1]
		}
		out[i] = &FileError{File: d.file, Line: d.lineOf(before, node, path), Err: e}
	}
	return errors.Join(out...)
}

func (d *decoder) errorf(before, line int, err error) error {
	// Both lines count from 1 on their own.
	return &FileError{File: d.file, Line: before + max(line, 1), Err: err}
}

// lineOf returns the line of the field at a path such as "spec.ports[0].port",
// or of the innermost part of it that exists. Where a list has no index, as in
// the decoder's type errors, its first entry is taken.
func (d *decoder) lineOf(before int, node *yamlv3.Node, path string) int {
	line := node.Line
	for _, part := range strings.Split(path, ".") {
		name, indices, _ := strings.Cut(part, "[")
		if node.Kind == yamlv3.SequenceNode && len(node.Content) > 0 {
			node = node.Content[0]
		}
		if name != "" {
			key, value := entry(node, name)
			if key == nil {
				break
			}
			line, node = key.Line, value
		}
		for _, text := range strings.Split(strings.TrimSuffix(indices, "]"), "][") {
			i, err := strconv.Atoi(text)
			if err != nil || node.Kind != yamlv3.SequenceNode || i < 0 || i >= len(node.Content) {
				break
			}
			node = node.Content[i]
			line = node.Line
		}
	}
	return before + line
}

// entry returns the key and value of a mapping.
func entry(node *yamlv3.Node, name string) (key, value *yamlv3.Node) {
	if node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	if node.Kind != yamlv3.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

func child(node *yamlv3.Node, name string) *yamlv3.Node {
	_, v := entry(node, name)
	return v
}

func yamlLine(err error) int {
	if m := yamlPosition.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

// yamlText is a parser's message in one line, without its own line number.
func yamlText(err error) string {
	s := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	s = yamlPosition.ReplaceAllString(s, "")
	return strings.Join(strings.Fields(s), " ")
}
