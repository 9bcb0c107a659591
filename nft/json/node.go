package json

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

type node struct {
	v    any
	path *path
}

// key of an object or, if empty, an index of a list
type path struct {
	up    *path
	key   string
	index int
}

// String returns a path such as "nftables[3].rule.expr[0]".
func (p *path) String() string {
	switch {
	case p == nil:
		return ""
	case p.key == "":
		return p.up.String() + "[" + strconv.Itoa(p.index) + "]"
	case p.up == nil:
		return p.key
	default:
		return p.up.String() + "." + p.key
	}
}

func (n node) errorf(format string, args ...any) *syntax.Error {
	return &syntax.Error{Msg: n.path.String() + ": " + fmt.Sprintf(format, args...)}
}

func (n node) object() map[string]any {
	o, _ := n.v.(map[string]any)
	return o
}

// The value is nil if missing.
func (n node) get(key string) node {
	return node{n.object()[key], &path{up: n.path, key: key}}
}

// has reports whether key has a value; null does not count.
func (n node) has(key string) bool { return n.object()[key] != nil }

// contains reports whether key has a value; null counts.
func (n node) contains(key string) bool { _, ok := n.object()[key]; return ok }

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

// list returns the items of a list. Another value is a single item, as in nft, and null is an empty
// list.
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

// A missing value has no path.
func (n node) pair() (key, value node) {
	if items := n.list(); n.isList() && len(items) == 2 {
		return items[0], items[1]
	}
	return n, node{}
}

// options is the object with the options, if any.
func (n node) element() (key, options node) {
	if name, arg, ok := n.only(); ok && name == "elem" {
		n = arg
	}
	if n.has("val") {
		return n.get("val"), n
	}
	return n, node{}
}

func (n node) texts() []string {
	var out []string
	for _, item := range n.list() {
		out = append(out, item.text())
	}
	return out
}

func (n node) isList() bool { _, ok := n.v.([]any); return ok }

func (n node) text() string { s, _ := n.v.(string); return s }

func (n node) comment() string {
	if s, ok := n.v.(string); ok {
		return nft.ParseComment(s)
	}
	return ""
}

// number returns the number as written, or "". nft prints unsigned numbers as signed.
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

func (n node) number32() string {
	s, _ := n.v.(json.Number)
	if v, err := strconv.ParseInt(s.String(), 10, 32); err == nil && v < 0 {
		return strconv.FormatUint(uint64(uint32(v)), 10)
	}
	return n.number()
}

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
