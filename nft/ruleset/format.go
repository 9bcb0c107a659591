package ruleset

import (
	"strconv"
	"strings"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
)

// Format prints tables for `nft -f` and Parse, without checking them.
func Format(tables []nft.Table) string {
	var f formatter
	for i := range tables {
		if i > 0 {
			f.line(0, "")
		}
		f.table(&tables[i])
	}
	return f.String()
}

type formatter struct{ strings.Builder }

func (f *formatter) line(depth int, words ...string) {
	for range depth {
		f.WriteByte('\t')
	}
	for _, w := range words {
		f.WriteString(w)
	}
	f.WriteByte('\n')
}

func (f *formatter) option(depth int, name, value string) {
	if value != "" {
		f.line(depth, name, " ", value)
	}
}

func (f *formatter) flags(depth int, flags []string) {
	f.option(depth, "flags", strings.Join(flags, ","))
}

func (f *formatter) comment(depth int, comment string) {
	if comment != "" {
		f.line(depth, `comment "`, nft.CommentText(comment), `"`)
	}
}

func duration(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return datatype.FormatDuration(d)
}

func (f *formatter) table(t *nft.Table) {
	f.line(0, "table ", t.ID().String(), " {")
	f.comment(1, t.Comment)
	f.flags(1, t.Flags)
	blank := t.Comment != "" || len(t.Flags) > 0
	separate := func() {
		if blank {
			f.line(0)
		}
		blank = true
	}
	for i := range t.Objects {
		separate()
		f.object(&t.Objects[i])
	}
	for i := range t.Flowtables {
		separate()
		f.flowtable(&t.Flowtables[i])
	}
	for i := range t.Sets {
		separate()
		f.set("set", &t.Sets[i])
	}
	for i := range t.Maps {
		separate()
		f.set("map", (*nft.Set)(&t.Maps[i]))
	}
	for i := range t.Chains {
		separate()
		f.chain(&t.Chains[i])
	}
	f.line(0, "}")
}

func (f *formatter) set(noun string, s *nft.Set) {
	f.line(1, noun, " ", s.Name, " {")
	if s.Type != "" {
		f.line(2, "type ", s.Type)
	} else {
		f.line(2, "typeof ", s.TypeOf)
	}
	f.flags(2, s.Flags)
	f.option(2, "timeout", duration(s.Timeout))
	f.option(2, "gc-interval", duration(s.GCInterval))
	if s.Size > 0 {
		f.line(2, "size ", strconv.FormatUint(uint64(s.Size), 10))
	}
	f.option(2, "policy", s.Policy)
	if s.AutoMerge {
		f.line(2, "auto-merge")
	}
	for _, text := range s.Stateful {
		f.line(2, text)
	}
	f.comment(2, s.Comment)
	if len(s.Elements) > 0 {
		f.line(2, "elements = {")
		for i := range s.Elements {
			comma := ","
			if i == len(s.Elements)-1 {
				comma = ""
			}
			f.line(3, FormatElement(&s.Elements[i]), comma)
		}
		f.line(2, "}")
	}
	f.line(1, "}")
}

// FormatElement returns an element in file syntax, without a comma.
func FormatElement(e *nft.Element) string {
	var b strings.Builder
	b.WriteString(e.Key)
	for _, text := range e.Stateful {
		b.WriteString(" " + text)
	}
	if e.Timeout > 0 {
		b.WriteString(" timeout " + datatype.FormatDuration(e.Timeout))
	}
	if e.Expires > 0 {
		b.WriteString(" expires " + datatype.FormatDuration(e.Expires))
	}
	if e.Comment != "" {
		b.WriteString(` comment "` + nft.CommentText(e.Comment) + `"`)
	}
	if e.Value != "" {
		b.WriteString(" : " + e.Value)
	}
	return b.String()
}

func (f *formatter) chain(c *nft.Chain) {
	f.line(1, "chain ", c.Name, " {")
	f.comment(2, c.Comment)
	var words []string
	if c.Base() {
		words = append(words, "type ", c.Type, " hook ", c.Hook)
		if c.Device != "" {
			words = append(words, ` device "`, c.Device, `"`)
		}
		if len(c.Devices) > 0 {
			words = append(words, " ", formatDevices(c.Devices))
		}
		words = append(words, " priority ", c.Priority, ";")
	}
	if c.Policy != "" {
		if words != nil {
			words = append(words, " ")
		}
		words = append(words, "policy ", c.Policy, ";")
	}
	if words != nil {
		f.line(2, words...)
	}
	f.flags(2, c.Flags)
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Comment != "" {
			f.line(2, r.Text, ` comment "`, nft.CommentText(r.Comment), `"`)
			continue
		}
		f.line(2, r.Text)
	}
	f.line(1, "}")
}

func (f *formatter) object(o *nft.Object) {
	f.line(1, string(o.Kind), " ", o.Name, " {")
	f.comment(2, o.Comment)
	if o.Text != "" {
		for _, statement := range splitStatements(o.Text) {
			f.line(2, statement)
		}
	}
	f.line(1, "}")
}

// splitStatements ignores semicolons in strings.
func splitStatements(text string) []string {
	var out []string
	start, quoted := 0, false
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ';' && !quoted:
			out = append(out, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return append(out, strings.TrimSpace(text[start:]))
}

func (f *formatter) flowtable(t *nft.Flowtable) {
	f.line(1, "flowtable ", t.Name, " {")
	if t.Hook != "" {
		f.line(2, "hook ", t.Hook, " priority ", t.Priority)
	}
	if len(t.Devices) > 0 {
		f.line(2, formatDevices(t.Devices))
	}
	if t.Counter {
		f.line(2, "counter")
	}
	f.flags(2, t.Flags)
	f.line(1, "}")
}

func formatDevices(names []string) string {
	return `devices = { "` + strings.Join(names, `", "`) + `" }`
}
