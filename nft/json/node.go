package json

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft/syntax"
)

// node is a value of a JSON document that knows its place.
type node struct {
	v    any
	path *path
}

// path is the way to a value: a key of an object, or an index of a list
// where key is empty.
type path struct {
	up    *path
	key   string
	index int
}

// String returns the path as in "nftables[3].rule.expr[0]".
func (p *path) String() string {
	var steps []string
	for ; p != nil; p = p.up {
		if p.key == "" {
			steps = append(steps, "["+strconv.Itoa(p.index)+"]")
		} else {
			steps = append(steps, "."+p.key)
		}
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		b.WriteString(steps[i])
	}
	return strings.TrimPrefix(b.String(), ".")
}

// errorf makes an error about the value.
func (n node) errorf(format string, args ...any) *syntax.Error {
	return &syntax.Error{Msg: n.path.String() + ": " + fmt.Sprintf(format, args...)}
}

// object returns the value as an object, nil where it is none.
func (n node) object() map[string]any {
	o, _ := n.v.(map[string]any)
	return o
}

// get returns a member of an object; its value is nil where there is none.
func (n node) get(key string) node {
	return node{n.object()[key], &path{up: n.path, key: key}}
}

// has reports whether an object has a member that is not null.
func (n node) has(key string) bool { return n.object()[key] != nil }

// only returns the single member of an object.
func (n node) only() (string, node, bool) {
	o := n.object()
	if len(o) != 1 {
		return "", n, false
	}
	for key := range o {
		return key, n.get(key), true
	}
	return "", n, false
}

// list returns the items of a list. What is no list is its own only item, null
// none: nft writes lists of one so.
func (n node) list() []node {
	items, ok := n.v.([]any)
	switch {
	case n.v == nil:
		return nil
	case !ok:
		return []node{n}
	}
	out := make([]node, len(items))
	for i, v := range items {
		out[i] = node{v, &path{up: n.path, index: i}}
	}
	return out
}

// texts returns the strings of a list.
func (n node) texts() []string {
	var out []string
	for _, item := range n.list() {
		out = append(out, item.text())
	}
	return out
}

// isList reports whether the value is a list.
func (n node) isList() bool { _, ok := n.v.([]any); return ok }

// text returns the value of a string, and "" of anything else.
func (n node) text() string { s, _ := n.v.(string); return s }

// number returns a number as it is written, and "" of anything else. nft prints
// unsigned numbers as if they were signed.
func (n node) number() string {
	s, ok := n.v.(json.Number)
	switch digits, negative := strings.CutPrefix(s.String(), "-"); {
	case !ok || strings.Trim(digits, "0123456789") != "":
		return ""
	case !negative:
		return digits
	}
	v, err := strconv.ParseInt(s.String(), 10, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(uint64(v), 10)
}

// number32 is number where nft has 32 bits.
func (n node) number32() string {
	s, _ := n.v.(json.Number)
	if v, err := strconv.ParseInt(s.String(), 10, 32); err == nil && v < 0 {
		return strconv.FormatUint(uint64(uint32(v)), 10)
	}
	return n.number()
}

// hasBool reports whether there is a boolean in the value.
func (n node) hasBool() bool {
	if _, ok := n.v.(bool); ok {
		return true
	}
	if n.isList() {
		return slices.ContainsFunc(n.list(), node.hasBool)
	}
	for _, key := range []string{"set", "elem", "val"} {
		if n.has(key) {
			return n.get(key).hasBool()
		}
	}
	return false
}

// describe names the value for messages.
func (n node) describe() string {
	switch v := n.v.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(v)
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		return fmt.Sprint(v)
	}
}
