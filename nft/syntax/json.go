package syntax

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// isJSON reports whether a file is JSON: no text of nft begins with a brace.
func isJSON(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{")
}

// ParseJSON reads what `nft -j list ruleset` of nft 1.0.6 prints (see
// libnftables-json(5)) into the same objects as ParseFile reads from text. Where
// JSON has less than the text, so have they: the types of sets that were declared
// with typeof, comments of tables and chains. Sets that rules write into are
// dynamic.
//
// The error is an *ErrorList; its errors name the place in the document, such as
// nftables[3].rule.expr[0].match.left.
func ParseJSON(name string, data []byte) ([]nft.Table, error) {
	tables, err := parseJSON(name, data)
	if err != nil {
		return nil, err
	}
	return tables, nil
}

// parseJSON is ParseJSON, and returns also beside an error what it understood.
func parseJSON(name string, data []byte) ([]nft.Table, error) {
	if err := checkFileLength(name, len(data)); err != nil {
		return nil, err
	}
	var list struct {
		Nftables []json.RawMessage `json:"nftables"`
	}
	if err := decodeJSON(data, &list); err != nil {
		return nil, &ErrorList{name, []*Error{jsonSyntaxError(string(data), err)}}
	}
	r := &jsonReader{tables: newFileParser("")}
	for i, raw := range list.Nftables {
		var v any
		if err := decodeJSON(raw, &v); err != nil {
			r.fail(&Error{Msg: fmt.Sprintf("nftables[%d]: %v", i, err)})
			break
		}
		r.entry(jsonNode{v, &jsonPath{up: &jsonPath{key: "nftables"}, index: i}})
		if len(r.errs) >= MaxErrors {
			break
		}
	}
	if len(r.errs) > 0 {
		return r.build(), &ErrorList{name, r.errs}
	}
	return r.build(), nil
}

// decodeJSON decodes one value and nothing behind it, with numbers as they are
// written.
func decodeJSON(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("parse JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("parse JSON: there is more behind the first value")
	}
	return nil
}

// jsonSyntaxError gives an error of the decoder its place. The source line is left
// out: nft prints all on one.
func jsonSyntaxError(text string, err error) *Error {
	offset := int64(-1)
	if e := (*json.SyntaxError)(nil); errors.As(err, &e) {
		offset = e.Offset
	}
	if e := (*json.UnmarshalTypeError)(nil); errors.As(err, &e) {
		offset = e.Offset
	}
	if offset < 0 || offset > int64(len(text)) {
		return &Error{Msg: err.Error()}
	}
	at := (&source{text: text, original: text}).errorAt(int(max(offset-1, 0)), err.Error())
	if len(at.Line) > maxJSONLine {
		at.Msg = fmt.Sprintf("line %d column %d: %s", at.Pos.Line, at.Pos.Column, at.Msg)
		at.Pos, at.Line = Pos{}, ""
	}
	return at
}

// maxJSONLine is the longest line that an error shows.
const maxJSONLine = 200

// jsonReader collects the objects of a document.
type jsonReader struct {
	// tables is a parser of files for the tables that it holds.
	tables *fileParser
	errs   []*Error
	// written are the sets that rules write into.
	written []jsonSetID
}

// jsonSetID names a set of a table.
type jsonSetID struct {
	table nft.TableID
	name  string
}

func (r *jsonReader) fail(err *Error) { r.errs = append(r.errs, err) }

// build returns the tables.
func (r *jsonReader) build() []nft.Table {
	for _, w := range r.written {
		if t := r.tables.tables[w.table]; t != nil {
			if s := t.set(w.name); s != nil && !slices.Contains(s.Flags, "dynamic") {
				s.Flags = append(s.Flags, "dynamic")
			}
		}
	}
	return r.tables.build()
}

// entry reads one object, which may be that of an add command.
func (r *jsonReader) entry(n jsonNode) {
	kind, o, ok := n.only()
	if ok && kind == "add" {
		n = o
		kind, o, ok = n.only()
	}
	switch {
	case !ok:
		r.fail(n.errorf("unexpected %s: want an object with one member, such as table", n.describe()))
	case kind == "metainfo":
	case slices.Contains(jsonCommands, kind):
		r.fail(n.errorf("%s is not possible here: JSON declares a ruleset, so that only add is", kind))
	case kind == "table":
		if t := r.table(o, "name"); t != nil {
			r.tableFlags(o, t)
		}
	default:
		if t := r.table(o, "table"); t != nil {
			r.object(kind, o, t)
		}
	}
}

// jsonCommands are the commands of libnftables-json(5) beside add.
var jsonCommands = []string{"replace", "create", "insert", "delete", "destroy", "list", "reset", "flush", "rename"}

// table returns the table that an object belongs to, or is.
func (r *jsonReader) table(o jsonNode, key string) *fileTable {
	family, err := nft.ParseFamily(o.get("family").text())
	if err != nil || !o.has("family") {
		r.fail(o.get("family").errorf("unexpected %s: want ip, ip6, inet, arp, bridge or netdev", o.get("family").describe()))
		return nil
	}
	name := r.name(o.get(key))
	if name == "" {
		return nil
	}
	return r.tables.addTable(nft.TableID{Family: family, Name: name})
}

// name returns a name, and "" with an error where it is none.
func (r *jsonReader) name(n jsonNode) string {
	if !isName(n.text()) {
		r.fail(n.errorf("unexpected %s: want a name", n.describe()))
		return ""
	}
	return n.text()
}

// tableFlags reads a table's flags, but those that belong to the process that
// made it.
func (r *jsonReader) tableFlags(o jsonNode, t *fileTable) {
	for _, f := range o.get("flags").list() {
		switch f.text() {
		case "owner", "persist":
		case "dormant":
			t.table.Flags = []string{"dormant"}
		default:
			r.fail(f.errorf("unexpected %s: want dormant", f.describe()))
		}
	}
	t.table.Comment = o.get("comment").text()
}

// object reads an object of a table.
func (r *jsonReader) object(kind string, o jsonNode, t *fileTable) {
	switch kind {
	case "chain":
		r.chain(o, t)
	case "rule":
		r.rule(o, t)
	case "set", "map":
		r.set(o, t, kind == "map")
	case "element":
		r.elements(o, t)
	case "flowtable":
		r.flowtable(o, t)
	case "meter":
		r.fail(o.errorf("meter is not possible here: %s", refusedStatements["meter"]))
	default:
		if !slices.Contains(nft.ObjectKinds[:], nft.ObjectKind(kind)) {
			r.fail(o.errorf("unknown object %q", kind))
			return
		}
		r.named(nft.ObjectKind(kind), o, t)
	}
}

// chain reads a chain.
func (r *jsonReader) chain(o jsonNode, t *fileTable) {
	name := r.name(o.get("name"))
	if name == "" {
		return
	}
	c := t.chain(name)
	if c == nil {
		c = &fileChain{Chain: nft.Chain{Name: name}}
		t.chainIndex[name] = len(t.chains)
		t.chains = append(t.chains, c)
	}
	c.Comment = o.get("comment").text()
	if !o.has("hook") {
		return
	}
	c.Type, c.Hook, c.Policy = o.get("type").text(), o.get("hook").text(), o.get("policy").text()
	if n, ok := o.get("prio").v.(json.Number); ok {
		c.Priority = n.String()
	}
	devices := o.get("dev").list()
	for _, d := range devices {
		c.Devices = append(c.Devices, d.text())
	}
	if len(devices) == 1 {
		c.Device, c.Devices = devices[0].text(), nil
	}
}

// rule reads a rule.
func (r *jsonReader) rule(o jsonNode, t *fileTable) {
	name := r.name(o.get("chain"))
	if name == "" {
		return
	}
	c := t.chain(name)
	if c == nil {
		r.fail(o.get("chain").errorf("chain %s of table %s is not declared", name, t.table.ID()))
		return
	}
	x := &jsonText{}
	stmts := o.get("expr").list()
	for i, s := range stmts {
		if i > 0 {
			x.str(" ")
		}
		x.stmt(s)
		if d := s.get("set"); d.has("set") {
			r.written = append(r.written, jsonSetID{t.table.ID(), strings.TrimPrefix(d.get("set").text(), "@")})
		}
	}
	if x.err != nil {
		r.fail(x.err)
		return
	}
	parsed, err := ParseRule(t.table.Family, x.b.String())
	if err != nil {
		r.fail(o.get("expr").errorf("which reads %q: %v", x.b.String(), err))
		return
	}
	comment := o.get("comment").text()
	if parsed.Comment != "" {
		r.fail(o.get("expr").errorf("a comment is no statement"))
		return
	}
	c.tail = append(c.tail, fileRule{Rule: nft.Rule{Text: Print(parsed), Comment: comment}})
}
