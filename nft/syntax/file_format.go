package syntax

import (
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
)

// FormatFile prints tables as a file that `nft -f` and ParseFile read.
func FormatFile(tables []nft.Table) string {
	var f fileFormatter
	for i := range tables {
		if i > 0 {
			f.line(0, "")
		}
		f.table(&tables[i])
	}
	return f.String()
}

// fileFormatter collects the lines of a file.
type fileFormatter struct{ strings.Builder }

func (f *fileFormatter) line(depth int, words ...string) {
	for range depth {
		f.WriteByte('\t')
	}
	for _, w := range words {
		f.WriteString(w)
	}
	f.WriteByte('\n')
}

func (f *fileFormatter) comment(depth int, comment string) {
	if comment != "" {
		f.line(depth, `comment "`, comment, `"`)
	}
}

func (f *fileFormatter) table(t *nft.Table) {
	f.line(0, "table ", t.ID().String(), " {")
	f.comment(1, t.Comment)
	blank := t.Comment != ""
	separate := func() {
		if blank {
			f.line(0)
		}
		blank = true
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

func (f *fileFormatter) set(noun string, s *nft.Set) {
	f.line(1, noun, " ", s.Name, " {")
	if s.Type != "" {
		f.line(2, "type ", s.Type)
	} else {
		f.line(2, "typeof ", s.TypeOf)
	}
	if len(s.Flags) > 0 {
		f.line(2, "flags ", strings.Join(s.Flags, ","))
	}
	if s.Timeout > 0 {
		f.line(2, "timeout ", datatype.FormatDuration(s.Timeout))
	}
	if s.GCInterval > 0 {
		f.line(2, "gc-interval ", datatype.FormatDuration(s.GCInterval))
	}
	if s.Size > 0 {
		f.line(2, "size ", strconv.FormatUint(uint64(s.Size), 10))
	}
	if s.Policy != "" {
		f.line(2, "policy ", s.Policy)
	}
	if s.AutoMerge {
		f.line(2, "auto-merge")
	}
	f.comment(2, s.Comment)
	if len(s.Elements) > 0 {
		f.line(2, "elements = {")
		for i := range s.Elements {
			f.element(&s.Elements[i], i == len(s.Elements)-1)
		}
		f.line(2, "}")
	}
	f.line(1, "}")
}

func (f *fileFormatter) element(e *nft.Element, last bool) {
	words := []string{e.Key}
	if e.Timeout > 0 {
		words = append(words, " timeout ", datatype.FormatDuration(e.Timeout))
	}
	if e.Comment != "" {
		words = append(words, ` comment "`, e.Comment, `"`)
	}
	if e.Value != "" {
		words = append(words, " : ", e.Value)
	}
	if !last {
		words = append(words, ",")
	}
	f.line(3, words...)
}

func (f *fileFormatter) chain(c *nft.Chain) {
	f.line(1, "chain ", c.Name, " {")
	f.comment(2, c.Comment)
	var words []string
	if c.Base() {
		words = append(words, "type ", c.Type, " hook ", c.Hook)
		if c.Device != "" {
			words = append(words, ` device "`, c.Device, `"`)
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
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Comment != "" {
			f.line(2, r.Text, ` comment "`, r.Comment, `"`)
			continue
		}
		f.line(2, r.Text)
	}
	f.line(1, "}")
}
