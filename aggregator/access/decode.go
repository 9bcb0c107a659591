package access

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Decoder decodes YAML into structs by the JSON names of their fields, and collects all problems.
// The library's decoder takes 1.5 for 1 and 010 for 8, and follows aliases.
type Decoder struct {
	Problems
	// Lines are the lines of fields and entries of lists, by path.
	Lines map[string]int
	// Kubernetes reads values as Kubernetes does: a null or an empty text leaves a field unset, and
	// yes is true. Otherwise they are errors.
	Kubernetes bool
	// parsers for fields with the tag text:"NAME", entries of lists and maps included
	texts map[string]func(string) (any, error)
	// keys of inlined maps, by the name of the struct's field
	names map[string][]string
}

type checker interface {
	check(d *Decoder, path string, line int)
}

// Decode decodes a document into a struct.
func (d *Decoder) Decode(root *yaml.Node, into any) {
	d.Lines = make(map[string]int)
	d.value("", root, reflect.ValueOf(into).Elem(), "")
}

func (d *Decoder) value(path string, n *yaml.Node, v reflect.Value, text string) {
	u, custom := v.Addr().Interface().(json.Unmarshaler)
	missing := n.Tag == "!!null" || n.Kind == yaml.ScalarNode && n.Value == "" && !d.Kubernetes
	switch {
	case n.Kind == yaml.AliasNode:
		d.Add(n.Line, path, "aliases are not supported: write the value out")
	case missing && d.Kubernetes:
	case missing:
		d.Add(n.Line, path, "the value is missing: give it one, or leave the field out")
	case custom:
		d.custom(path, n, u)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, n, v.Elem(), text)
	case v.Kind() == reflect.Slice:
		d.list(path, n, v, text)
	case v.Kind() == reflect.Struct || v.Kind() == reflect.Map:
		d.mapping(path, n, v)
	default:
		d.scalar(path, n, v, text)
	}
}

func (d *Decoder) list(path string, n *yaml.Node, v reflect.Value, text string) {
	if n.Kind != yaml.SequenceNode {
		d.Add(n.Line, path, "got %s: want a list", describe(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, entry := range n.Content {
		sub := fmt.Sprintf("%s[%d]", path, i)
		d.Lines[sub] = entry.Line
		d.value(sub, entry, v.Index(i), text)
	}
}

type target struct {
	v    reflect.Value
	text string
	// if v is a map
	key reflect.Value
}

func (d *Decoder) mapping(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.Add(n.Line, path, "got %s: want a mapping of fields", describe(n))
		return
	}
	known := make(map[string]target)
	if v.Kind() == reflect.Struct {
		d.targets(v, known)
	} else {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		to, ok := known[key.Value]
		if v.Kind() == reflect.Map {
			to, ok = target{v: v, key: reflect.ValueOf(key.Value)}, true
		}
		sub := strings.TrimPrefix(path+"."+key.Value, ".")
		switch first := d.Lines[sub]; {
		case !ok || key.Kind != yaml.ScalarNode:
			d.Add(key.Line, path, "unknown field %q: %s", clip(key.Value), suggest(key.Value, known))
		case first != 0:
			d.Add(key.Line, sub, "duplicate field, first set in line %d: remove one", first)
		default:
			d.Lines[sub] = key.Line
			d.set(sub, value, to)
		}
	}
	if c, ok := v.Addr().Interface().(checker); ok {
		c.check(d, path, n.Line)
	}
}

func (d *Decoder) set(path string, n *yaml.Node, to target) {
	if !to.key.IsValid() {
		d.value(path, n, to.v, to.text)
		return
	}
	entry := reflect.New(to.v.Type().Elem()).Elem()
	d.value(path, n, entry, to.text)
	to.v.SetMapIndex(to.key.Convert(to.v.Type().Key()), entry)
}

func (d *Decoder) targets(v reflect.Value, known map[string]target) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		text := field.Tag.Get("text")
		switch inline := slices.Contains(strings.Split(options, ","), "inline") || field.Anonymous && name == ""; {
		case inline && field.Type.Kind() == reflect.Map:
			v.Field(i).Set(reflect.MakeMap(field.Type))
			for _, key := range d.names[field.Name] {
				known[key] = target{v.Field(i), text, reflect.ValueOf(key)}
			}
		case inline:
			d.targets(v.Field(i), known)
		case name != "" && name != "-":
			known[name] = target{v: v.Field(i), text: text}
		}
	}
}

func suggest(name string, known map[string]target) string {
	all := slices.Sorted(maps.Keys(known))
	for _, field := range all {
		if strings.EqualFold(field, name) {
			return "did you mean " + field + "?"
		}
	}
	return "want " + strings.Join(all, ", ")
}

// custom decodes a type of Kubernetes, which reads JSON.
func (d *Decoder) custom(path string, n *yaml.Node, u json.Unmarshaler) {
	text := []byte(n.Value)
	if n.Tag == "!!str" {
		text, _ = json.Marshal(n.Value)
	}
	if n.Kind != yaml.ScalarNode || u.UnmarshalJSON(text) != nil {
		d.Add(n.Line, path, "got %s: want a value such as \"30s\" for a time, \"64Ki\" for a size", describe(n))
	}
}

var kinds = map[reflect.Kind]string{
	reflect.String: "a text in quotes", reflect.Bool: "true or false", reflect.Float32: "a number", reflect.Float64: "a number",
	reflect.Int32: "a whole number from -2147483648 to 2147483647", reflect.Uint32: "a whole number from 0 to 4294967295, such as 65280 or 0xff00",
}

func (d *Decoder) scalar(path string, n *yaml.Node, v reflect.Value, text string) {
	want, isText := kinds[v.Kind()], v.Kind() == reflect.String
	// A number is not a text, and 010 is neither eight nor ten.
	plain := n.Tag != "!!str" || d.Kubernetes && v.Kind() == reflect.Bool && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
	whole := !v.CanInt() && !v.CanUint() || n.Tag == "!!int" && !zeroFirst(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode && text != "":
		d.Add(n.Line, path, "got %s: want a single value", describe(n))
	case n.Kind != yaml.ScalarNode || plain && isText || !plain && v.CanFloat():
		d.Add(n.Line, path, "got %s: want %s", describe(n), want)
	case text != "":
		parsed, err := d.texts[text](n.Value)
		if err != nil {
			d.Add(n.Line, path, "%v", err)
			return
		}
		v.Set(reflect.ValueOf(parsed).Convert(v.Type()))
	case plain == isText || !whole || n.Decode(v.Addr().Interface()) != nil:
		d.Add(n.Line, path, "got %s: want %s", describe(n), want)
	}
}

func zeroFirst(number string) bool {
	digits := strings.TrimLeft(number, "+-")
	return len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'
}

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
