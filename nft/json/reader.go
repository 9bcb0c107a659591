package json

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

type reader struct {
	// in the order of their first mention
	tables []*table
	byID   map[nft.TableID]*table
	errs   []*syntax.Error
	// written by rules
	written []setID
}

type table struct {
	nft.Table
	// by name
	chains, sets, maps map[string]int
}

type setID struct {
	table *table
	name  string
}

func (t *table) chain(name string) *nft.Chain {
	if i, ok := t.chains[name]; ok {
		return &t.Chains[i]
	}
	return nil
}

func (t *table) set(name string) *nft.Set {
	if i, ok := t.sets[name]; ok {
		return &t.Sets[i]
	}
	if i, ok := t.maps[name]; ok {
		return (*nft.Set)(&t.Maps[i])
	}
	return nil
}

func (r *reader) fail(err *syntax.Error) { r.errs = append(r.errs, err) }

func (r *reader) finish() []nft.Table {
	for _, w := range r.written {
		if s := w.table.set(w.name); s != nil && !slices.Contains(s.Flags, "dynamic") {
			s.Flags = append(s.Flags, "dynamic")
		}
	}
	tables := make([]nft.Table, len(r.tables))
	for i, t := range r.tables {
		tables[i] = t.Table
	}
	return tables
}

// rejected commands of libnftables-json(5)
var commands = []string{"replace", "create", "insert", "delete", "destroy", "list", "reset", "flush", "rename"}

// entry reads an object, which may be the argument of an add command.
func (r *reader) entry(n node) {
	kind, o, ok := n.only()
	if ok && kind == "add" {
		n = o
		kind, o, ok = n.only()
	}
	switch {
	case !ok:
		r.fail(n.errorf("unexpected %s: want an object with one member, such as table", n.describe()))
	case kind == "metainfo":
	case slices.Contains(commands, kind):
		r.fail(n.errorf("%s is not possible here: a document declares a ruleset, so the only command is add", kind))
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

// table returns the table that o names, and adds a new one to the document.
func (r *reader) table(o node, key string) *table {
	family, err := nft.ParseFamily(o.get("family").text())
	if err != nil || !o.has("family") {
		r.fail(o.get("family").errorf("unexpected %s: want ip, ip6, inet, arp, bridge or netdev", o.get("family").describe()))
		return nil
	}
	id := nft.TableID{Family: family, Name: r.name(o.get(key))}
	if id.Name == "" {
		return nil
	}
	if r.byID[id] == nil {
		t := &table{Table: nft.Table{Family: family, Name: id.Name}, chains: map[string]int{}, sets: map[string]int{}, maps: map[string]int{}}
		r.byID[id] = t
		r.tables = append(r.tables, t)
	}
	return r.byID[id]
}

func (r *reader) name(n node) string {
	if !scan.IsName(n.text()) {
		r.fail(n.errorf("unexpected %s: want a name", n.describe()))
		return ""
	}
	return n.text()
}

// tableFlags drops flags that belong to the process that made the table.
func (r *reader) tableFlags(o node, t *table) {
	for _, f := range o.get("flags").list() {
		switch f.text() {
		case "owner", "persist":
		case "dormant":
			t.Flags = []string{"dormant"}
		default:
			r.fail(f.errorf("unexpected %s: want dormant", f.describe()))
		}
	}
	t.Comment = o.get("comment").comment()
}

func (r *reader) object(kind string, o node, t *table) {
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
		if !nft.ObjectKind(kind).IsValid() {
			r.fail(o.errorf("unknown object %q", kind))
			return
		}
		r.named(nft.ObjectKind(kind), o, t)
	}
}

func (r *reader) chain(o node, t *table) {
	name := r.name(o.get("name"))
	if name == "" {
		return
	}
	c := t.chain(name)
	if c == nil {
		t.chains[name] = len(t.Chains)
		t.Chains = append(t.Chains, nft.Chain{Name: name})
		c = t.chain(name)
	}
	c.Comment = o.get("comment").comment()
	if !o.has("hook") {
		return
	}
	c.Type, c.Hook, c.Policy = o.get("type").text(), o.get("hook").text(), o.get("policy").text()
	if n, ok := o.get("prio").v.(json.Number); ok {
		c.Priority = n.String()
	}
	if devices := o.get("dev").texts(); len(devices) == 1 {
		c.Device = devices[0]
	} else {
		c.Devices = append(c.Devices, devices...)
	}
}

// rule rewrites the statements in nft's own syntax and parses them.
func (r *reader) rule(o node, t *table) {
	name := r.name(o.get("chain"))
	if name == "" {
		return
	}
	c := t.chain(name)
	if c == nil {
		r.fail(o.get("chain").errorf("chain %s of table %s is not declared", name, t.ID()))
		return
	}
	x := &writer{}
	for i, s := range o.get("expr").list() {
		x.separator(i, " ")
		x.stmt(s)
		if d := s.get("set"); d.has("set") {
			r.written = append(r.written, setID{t, strings.TrimPrefix(d.get("set").text(), "@")})
		}
	}
	if x.err != nil {
		r.fail(x.err)
		return
	}
	parsed, err := syntax.ParseRule(t.Family, x.b.String())
	if err != nil {
		r.fail(o.get("expr").errorf("it reads %q: %v", x.b.String(), err))
		return
	}
	if parsed.Comment != "" {
		r.fail(o.get("expr").errorf("a comment is not a statement"))
		return
	}
	c.Rules = append(c.Rules, nft.Rule{Text: syntax.Print(parsed), Comment: o.get("comment").comment()})
}
