package kubeproxy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/kube-proxy/config/v1alpha1"

	"github.com/weft-proxy/weft/aggregator/access"
)

// decoder decodes YAML by JSON names, and collects all problems with their lines. The decoders of
// Kubernetes report no lines and stop at the first wrong type.
type decoder struct {
	access.Problems
	// by the paths of fields
	lines map[string]int
}

func (d *decoder) line(path string) int {
	for {
		if n, ok := d.lines[path]; ok {
			return n
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return 0
		}
		path = path[:i]
	}
}

// value decodes n into v. A null is an unset field: kubeadm writes such fields.
func (d *decoder) value(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind == yaml.AliasNode {
		d.Add(n.Line, path, "aliases are not supported: write the value out")
		return
	}
	if n.Tag == "!!null" {
		return
	}
	if u, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		d.custom(path, n, u)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.value(path, n, p.Elem())
		v.Set(p)
	case reflect.Struct:
		d.fields(path, n, v)
	case reflect.Map:
		d.table(path, n, v)
	case reflect.Slice:
		d.list(path, n, v)
	default:
		d.scalar(path, n, v)
	}
}

func (d *decoder) custom(path string, n *yaml.Node, u json.Unmarshaler) {
	text := n.Value
	if n.Tag == "!!str" {
		b, err := json.Marshal(n.Value)
		if err != nil {
			d.Add(n.Line, path, "%v", err)
			return
		}
		text = string(b)
	}
	if n.Kind != yaml.ScalarNode {
		d.Add(n.Line, path, "got %s: want a single value", describe(n))
	} else if err := u.UnmarshalJSON([]byte(text)); err != nil {
		d.Add(n.Line, path, "got %s: want a value such as \"30s\" for a time, \"64Ki\" for a size", describe(n))
	}
}

var kinds = map[reflect.Kind]string{
	reflect.String: "a text", reflect.Bool: "true or false", reflect.Int32: "a whole number", reflect.Uint32: "a whole number of at least 0",
	reflect.Float32: "a number",
}

func (d *decoder) scalar(path string, n *yaml.Node, v reflect.Value) {
	want, ok := kinds[v.Kind()]
	if !ok {
		d.Add(n.Line, path, "weft cannot read a field of type %s", v.Type())
		return
	}
	// Like kube-proxy: numbers are not strings, and yes and no are booleans, as in YAML 1.1.
	plain := n.Tag != "!!str" || v.Kind() == reflect.Bool && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
	if n.Kind != yaml.ScalarNode || plain == (v.Kind() == reflect.String) {
		if n.Kind == yaml.ScalarNode && v.Kind() == reflect.String {
			want = "a text in quotes"
		}
		d.Add(n.Line, path, "got %s: want %s", describe(n), want)
		return
	}
	if err := n.Decode(v.Addr().Interface()); err != nil {
		d.Add(n.Line, path, "got %s: want %s", describe(n), want)
	}
}

func (d *decoder) list(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.Add(n.Line, path, "got %s: want a list", describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		sub := fmt.Sprintf("%s[%d]", path, i)
		d.lines[sub] = item.Line
		d.value(sub, item, out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) table(path string, n *yaml.Node, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	d.mapping(path, n, func(sub string, key, value *yaml.Node) {
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(sub, value, e)
		v.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), e)
	})
}

func (d *decoder) fields(path string, n *yaml.Node, v reflect.Value) {
	known := make(map[string]reflect.Value)
	jsonFields(v, known)
	d.mapping(path, n, func(sub string, key, value *yaml.Node) {
		if f, ok := known[key.Value]; ok {
			d.value(sub, value, f)
			return
		}
		hint := ""
		for name := range known {
			if strings.EqualFold(name, key.Value) {
				hint = ": did you mean " + name + "?"
			}
		}
		d.Add(key.Line, path, "unknown field %q%s", key.Value, hint)
	})
}

func jsonFields(v reflect.Value, out map[string]reflect.Value) {
	for i := range v.NumField() {
		name, rest, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case slices.Contains(strings.Split(rest, ","), "inline"):
			jsonFields(v.Field(i), out)
		case name != "" && name != "-":
			out[name] = v.Field(i)
		}
	}
}

// mapping calls f for the first occurrence of each key.
func (d *decoder) mapping(path string, n *yaml.Node, f func(sub string, key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.Add(n.Line, path, "got %s: want a mapping of fields", describe(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		sub := key.Value
		if path != "" {
			sub = path + "." + sub
		}
		if first, twice := d.lines[sub]; twice {
			d.Add(key.Line, sub, "duplicate field, first set in line %d: remove one", first)
			continue
		}
		d.lines[sub] = key.Line
		f(sub, key, value)
	}
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		const most = 60
		return fmt.Sprintf("%.*q", most, n.Value)
	}
}

// The apiVersion and kind of a file.
const (
	APIVersion = v1alpha1.GroupName + "/v1alpha1"
	Kind       = "KubeProxyConfiguration"
)

// KindOf returns the kind in a file, in invalid YAML of the first line "kind: ...". It returns "" for
// a file without kind or an unreadable file; decoding reports errors.
func KindOf(file string) string {
	data, err := access.Read(file)
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

type document struct {
	config v1alpha1.KubeProxyConfiguration
	decoder
}

// parse decodes a file without defaults or validation of values.
//
// Possible errors: an *access.FileError.
func parse(file string, data []byte) (*document, error) {
	doc := &document{decoder: decoder{lines: make(map[string]int)}}
	if root := doc.Document(data, APIVersion, Kind); root != nil {
		doc.value("", root, reflect.ValueOf(&doc.config).Elem())
		got := [2]string{doc.config.APIVersion, doc.config.Kind}
		if doc.Err(file) == nil && got != [2]string{APIVersion, Kind} {
			doc.Add(root.Line, "", "got apiVersion %q and kind %q: want apiVersion %s and kind %s", got[0], got[1], APIVersion, Kind)
		}
	}
	return doc, doc.Err(file)
}
