package syntax

import (
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
)

// attribute writes "; NAME VALUE"; nothing for an empty value.
func attribute(b *strings.Builder, name, value string) {
	if value == "" {
		return
	}
	if b.Len() > 0 {
		b.WriteString("; ")
	}
	b.WriteString(name)
	b.WriteByte(' ')
	b.WriteString(value)
}

func (o *TimeoutBody) print(b *strings.Builder) {
	attribute(b, "protocol", o.Protocol)
	attribute(b, "l3proto", o.L3Proto)
	if len(o.Policy) == 0 {
		return
	}
	states := make([]string, len(o.Policy))
	for i, t := range o.Policy {
		states[i] = fmt.Sprintf("%s : %d", t.State, t.Seconds)
	}
	attribute(b, "policy", "= { "+strings.Join(states, ", ")+" }")
}

func (o *ExpectationBody) print(b *strings.Builder) {
	attribute(b, "protocol", o.Protocol)
	if o.DPort != 0 {
		attribute(b, "dport", fmt.Sprint(o.DPort))
	}
	if o.Timeout != 0 {
		attribute(b, "timeout", datatype.FormatDuration(o.Timeout))
	}
	if o.Size != 0 {
		attribute(b, "size", fmt.Sprint(o.Size))
	}
	attribute(b, "l3proto", o.L3Proto)
}

func (o *SynProxyBody) print(b *strings.Builder) {
	if !o.Given {
		return
	}
	fmt.Fprintf(b, "mss %d wscale %d", o.MSS, o.WScale)
	if o.Timestamp {
		b.WriteString(" timestamp")
	}
	if o.SackPerm {
		b.WriteString(" sack-perm")
	}
}
