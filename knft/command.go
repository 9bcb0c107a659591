package knft

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/nft"
)

type verb string

const (
	verbAdd     verb = "add"
	verbCreate  verb = "create"
	verbInsert  verb = "insert"
	verbReplace verb = "replace"
	verbDelete  verb = "delete"
	verbDestroy verb = "destroy"
	verbFlush   verb = "flush"
	verbReset   verb = "reset"
)

type kind string

const (
	kindTable     kind = "table"
	kindChain     kind = "chain"
	kindRule      kind = "rule"
	kindSet       kind = "set"
	kindMap       kind = "map"
	kindElement   kind = "element"
	kindFlowtable kind = "flowtable"
	kindCounter   kind = "counter"
)

var (
	verbs = []verb{verbAdd, verbCreate, verbInsert, verbReplace, verbDelete, verbDestroy, verbFlush, verbReset}
	kinds = []kind{kindTable, kindChain, kindRule, kindSet, kindMap, kindElement, kindFlowtable, kindCounter}
)

type command struct {
	verb  verb
	kind  kind
	table nft.TableID
	// a rule's chain; an element's set; empty for a table
	name string
	// the text after the name
	rest string
}

func (c *command) String() string {
	s := fmt.Sprintf("%s %s %s", c.verb, c.kind, c.table)
	if c.name != "" {
		s += " " + c.name
	}
	return s
}

const errorPrefix = "# ERROR: "

// knftables does not export the operations of a transaction, so commands parses its text.
//
// Possible errors: the transaction's own; ErrUnsupported; text that is not a command.
func commands(tx *knftables.Transaction) ([]command, error) {
	if tx == nil {
		return nil, errors.New("no transaction: make one with NewTransaction")
	}
	lines, err := split(tx.String())
	if err != nil {
		return nil, err
	}
	if len(lines) != tx.NumOperations() {
		return nil, fmt.Errorf("%d operations make %d commands: a line of a rule or key looks like a command of its own", tx.NumOperations(), len(lines))
	}
	out := make([]command, len(lines))
	for i, line := range lines {
		if out[i], err = parse(line); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// byHandle matches a deletion by handle, except of rules. knftables does not end it with a line break.
var byHandle = regexp.MustCompile(`^(delete|destroy) (?:(table) [^ ]*|(chain|set|map|flowtable|counter) [^ ]* [^ ]*) handle `)

// Rules may have line breaks inside of braces.
func split(text string) ([]string, error) {
	var out []string
	for len(text) > 0 {
		line, rest, _ := strings.Cut(text, "\n")
		if msg, ok := strings.CutPrefix(line, errorPrefix); ok && rest == "" {
			return nil, errors.New(msg)
		}
		if m := byHandle.FindStringSubmatch(line); m != nil {
			return nil, fmt.Errorf("%s %s by handle: %w: give its name", m[1], m[2]+m[3], ErrUnsupported)
		}
		switch {
		case begins(line):
			out = append(out, line)
		case len(out) > 0:
			out[len(out)-1] += "\n" + line
		default:
			return nil, fmt.Errorf("%q is not a command", clip(line))
		}
		text = rest
	}
	return out, nil
}

func begins(line string) bool {
	v, rest, _ := strings.Cut(line, " ")
	if !slices.Contains(verbs, verb(v)) {
		return false
	}
	k, _, _ := strings.Cut(rest, " ")
	return slices.Contains(kinds, kind(k))
}

func parse(line string) (command, error) {
	var c command
	rest := line
	word := func() string {
		w, r, _ := strings.Cut(rest, " ")
		rest = r
		return w
	}
	c.verb, c.kind = verb(word()), kind(word())
	family, table := word(), word()
	if c.verb == verbReset {
		return c, fmt.Errorf("%s %s %s: %w", c.verb, c.kind, clip(word()), ErrUnsupported)
	}
	var err error
	if c.table, err = newTableID(family, table); err != nil {
		return c, fmt.Errorf("%s %s: %w", c.verb, c.kind, err)
	}
	if c.kind != kindTable {
		c.name = word()
	}
	c.rest = rest
	if c.kind != kindTable && c.name == "" {
		return c, fmt.Errorf("%s %s %s: no name", c.verb, c.kind, c.table)
	}
	return c, nil
}

func newTableID(family, table string) (nft.TableID, error) {
	if family == "" {
		return nft.TableID{}, errors.New("no family")
	}
	f, err := nft.ParseFamily(family)
	if err != nil {
		return nft.TableID{}, err
	}
	if table == "" {
		return nft.TableID{}, errors.New("no table")
	}
	return nft.TableID{Family: f, Name: table}, nil
}

func clip(s string) string {
	if len(s) > 64 {
		return fmt.Sprintf("%.64s...", s)
	}
	return s
}
