package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// bytes of a manifest file
const maxManifest = 64 << 20

// FileError is an error in a manifest, logged by Manifests.
type FileError struct {
	File string
	// Line counts from 1; 0 means the whole file.
	Line int
	Err  error
}

// Error returns "file:line: cause".
func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

func (id identity) String() string {
	if id.namespace == "" {
		return id.kind.Kind + " " + id.name
	}
	return id.kind.Kind + " " + id.namespace + "/" + id.name
}

type object struct {
	id   identity
	gvk  schema.GroupVersionKind
	line int
	// canonical JSON; equal text means equal objects
	text string
	// complete and not modified any more
	object Object
}

type skipped struct {
	line int
	kind string
}

type decoder struct {
	file    string
	kinds   map[schema.GroupVersionKind][]*kind
	objects []object
	skipped []skipped
	seen    map[identity]int
}

// An error in one document rejects the whole file, because a partial file may be worse than its previous
// state. All errors of decode are *FileError, joined.
func decode(file string, content []byte, kinds map[schema.GroupVersionKind][]*kind) ([]object, []skipped, error) {
	d := &decoder{file: file, kinds: kinds, seen: make(map[identity]int)}
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

// documents yields each document and the number of lines before it.
func documents(content []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		start, before, at, n := 0, 0, 0, 0
		for line := range bytes.Lines(content) {
			if bytes.HasPrefix(line, []byte("---")) && (len(bytes.TrimSpace(line)) == 3 || line[3] == ' ') {
				if !yield(before, content[start:at]) {
					return
				}
				start, before = at+3, n
			}
			at += len(line)
			n++
		}
		yield(before, content[start:])
	}
}

func (d *decoder) document(before int, doc []byte) error {
	var root yamlv3.Node
	if err := yamlv3.NewDecoder(bytes.NewReader(doc)).Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return d.syntax(before, err)
	}
	if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return nil
	}
	text, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return d.syntax(before, err)
	}
	return d.value(before, root.Content[0], text)
}

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
	gvk := gv.WithKind(meta.Kind)
	if item, ok := strings.CutSuffix(gvk.Kind, "List"); ok && (len(d.kinds[gv.WithKind(item)]) > 0 || gvk == corev1.SchemeGroupVersion.WithKind("List")) {
		return d.list(before, node)
	}
	kinds := d.kinds[gvk]
	if len(kinds) == 0 {
		if now, ok := d.removed(gvk); ok {
			return &FileError{File: d.file, Line: d.lineOf(before, node, "apiVersion"), Err: fmt.Errorf("no API server has %s of %s any more: use %s", gvk.Kind, meta.APIVersion, now)}
		}
		if d.unknown(gvk) {
			return &FileError{File: d.file, Line: d.lineOf(before, node, "kind"), Err: fmt.Errorf("unknown kind %s of %s", gvk.Kind, meta.APIVersion)}
		}
		d.skipped = append(d.skipped, skipped{line: line, kind: meta.APIVersion + " " + meta.Kind})
		return nil
	}
	types := kinds[0].scheme
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types, json.SerializerOptions{Strict: true})
	decoded, _, err := strict.Decode(text, nil, nil)
	if s, ok := runtime.AsStrictDecodingError(err); ok && decoded != nil && !slices.ContainsFunc(s.Errors(), func(e error) bool { return e.Error() != `unknown field "status"` }) {
		// Older servers printed a status for kinds without one.
		err = nil
	}
	if err != nil {
		return d.decodeErrors(before, node, err)
	}
	o, err := kinds[0].accepts(decoded)
	if err != nil {
		return &FileError{File: d.file, Line: line, Err: err}
	}
	return d.add(object{gvk: gvk, line: line, text: string(text), object: o})
}

// unknown reports a kind, perhaps misspelled, that does not exist in a used group.
func (d *decoder) unknown(gvk schema.GroupVersionKind) bool {
	inGroup := false
	for known, kinds := range d.kinds {
		if kinds[0].scheme.Recognizes(gvk) {
			return false
		}
		inGroup = inGroup || known.Group == gvk.Group
	}
	return inGroup && !scheme.Scheme.Recognizes(gvk)
}

// removed returns the version that replaces an old one.
func (d *decoder) removed(gvk schema.GroupVersionKind) (now string, ok bool) {
	if !scheme.Scheme.Recognizes(gvk) {
		return "", false
	}
	for known := range d.kinds {
		if (known.Kind == gvk.Kind || known.Kind+"List" == gvk.Kind) && (known.Group == gvk.Group || gvk.Group == extensionsv1beta1.GroupName) {
			return known.GroupVersion().String(), true
		}
	}
	return "", false
}

func (d *decoder) list(before int, node *yamlv3.Node) error {
	_, items := field(node, "items")
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

func (d *decoder) add(o object) error {
	missing := ""
	for _, k := range d.kinds[o.gvk] {
		if k.namespaced && o.object.GetNamespace() == "" {
			o.object.SetNamespace(corev1.NamespaceDefault)
		}
		if k.complete != nil {
			missing = cmp.Or(missing, k.complete(o.object))
		}
	}
	o.id = identity{kind: o.gvk.GroupKind(), namespace: o.object.GetNamespace(), name: o.object.GetName()}
	if o.id.name == "" {
		missing = "metadata.name"
	}
	if missing != "" {
		return &FileError{File: d.file, Line: o.line, Err: fmt.Errorf("%s: %s is missing: the file may be only partly written", o.id, missing)}
	}
	if first, twice := d.seen[o.id]; twice {
		return &FileError{File: d.file, Line: o.line, Err: fmt.Errorf("%s is already in line %d of this file", o.id, first)}
	}
	var refused []string
	for _, k := range d.kinds[o.gvk] {
		if k.validate != nil {
			refused = append(refused, k.validate(o.object)...)
		}
	}
	for _, e := range apivalidation.ValidateObjectMetaAccessor(o.object, o.object.GetNamespace() != "", apivalidation.NameIsDNSSubdomain, fieldpath.NewPath("metadata")) {
		refused = append(refused, e.Error())
	}
	if len(refused) > 0 {
		return &FileError{File: d.file, Line: o.line, Err: fmt.Errorf("%s: an API server would refuse it: %s", o.id, strings.Join(refused, "; "))}
	}
	d.seen[o.id] = o.line
	d.objects = append(d.objects, o)
	return nil
}

var (
	errorField   = regexp.MustCompile(`^(?:unknown|duplicate) field "([^"]+)"|Go struct field [A-Za-z0-9]+\.([A-Za-z0-9_.]+) of type`)
	yamlPosition = regexp.MustCompile(`line (\d+): ?`)
)

func (d *decoder) decodeErrors(before int, node *yamlv3.Node, err error) error {
	all := []error{err}
	if s, ok := runtime.AsStrictDecodingError(err); ok {
		all = s.Errors()
	}
	out := make([]error, len(all))
	for i, e := range all {
		path := ""
		if m := errorField.FindStringSubmatch(e.Error()); m != nil {
			path = m[1] + m[2]
		}
		out[i] = &FileError{File: d.file, Line: d.lineOf(before, node, path), Err: e}
	}
	return errors.Join(out...)
}

// The parser's line counts from 1 in the document.
func (d *decoder) syntax(before int, err error) error {
	line := 1
	if m := yamlPosition.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		line = max(n, 1)
	}
	return &FileError{File: d.file, Line: before + line, Err: errors.New(yamlText(err))}
}

// lineOf returns the line of the innermost existing part of path, such as "spec.ports[0].port".
func (d *decoder) lineOf(before int, node *yamlv3.Node, path string) int {
	line := node.Line
	for _, part := range strings.Split(path, ".") {
		name, indices, _ := strings.Cut(part, "[")
		if node.Kind == yamlv3.SequenceNode && len(node.Content) > 0 {
			node = node.Content[0]
		}
		if name != "" {
			key, value := field(node, name)
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

func field(node *yamlv3.Node, name string) (key, value *yamlv3.Node) {
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

func yamlText(err error) string {
	s := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	s = yamlPosition.ReplaceAllString(s, "")
	return strings.Join(strings.Fields(s), " ")
}
