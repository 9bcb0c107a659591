package statuspage

import (
	"html"
	"strings"
)

type node interface{ write(b *strings.Builder) }

// text is escaped when it is written.
type text string

func (t text) write(b *strings.Builder) { b.WriteString(html.EscapeString(string(t))) }

type element struct {
	name string
	// names and values in turn
	attributes []string
	children   []node
}

var void = map[string]bool{"meta": true, "link": true, "input": true}

func (e *element) write(b *strings.Builder) {
	b.WriteString("<" + e.name)
	for i := 0; i+1 < len(e.attributes); i += 2 {
		b.WriteString(" " + e.attributes[i] + `="` + html.EscapeString(e.attributes[i+1]) + `"`)
	}
	b.WriteString(">")
	for _, c := range e.children {
		c.write(b)
	}
	if !void[e.name] {
		b.WriteString("</" + e.name + ">")
	}
}

// el does not escape name, a constant of this package.
func el(name string, children ...node) *element { return &element{name: name, children: children} }

func (e *element) with(attributes ...string) *element {
	e.attributes = append(e.attributes, attributes...)
	return e
}

type list []node

func (l list) write(b *strings.Builder) {
	for _, n := range l {
		n.write(b)
	}
}
