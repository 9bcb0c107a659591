package kernel

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/set"
)

// summaryElements is how many elements String and errors show.
const summaryElements = 4

// Describe returns an op in nft's words, with all of its elements, such as
// "add element ip weft services { 10.96.0.1 . tcp . 80 : goto pick-3 }".
func Describe(op Op) string { return describe(op, -1) }

// summarize is Describe with a few elements at most; where element is one of
// the op's, with that one alone.
func summarize(op Op, element int) string {
	switch o := op.(type) {
	case AddElements:
		if element >= 0 && element < len(o.Elements) {
			o.Elements = o.Elements[element : element+1]
			return o.String()
		}
	case DeleteElements:
		if element >= 0 && element < len(o.Elements) {
			o.Elements = o.Elements[element : element+1]
			return o.String()
		}
	}
	return op.String()
}

// describe puts an op into words with at most limit elements, all where limit
// is negative.
func describe(op Op, limit int) string {
	switch o := op.(type) {
	case AddTable:
		return describeTable(o)
	case DeleteTable:
		return "delete table " + o.Table.String()
	case AddChain:
		return describeChain(o)
	case DeleteChain:
		return fmt.Sprintf("delete chain %s %s", o.Table, o.Name)
	case AddRule:
		return describeRule(o)
	case DeleteRule:
		return fmt.Sprintf("delete rule %s %s handle %d", o.Table, o.Chain, handleOf(o.Handle))
	case AddSet:
		return describeSet(o)
	case DeleteSet:
		return fmt.Sprintf("delete set %s %s", o.Table, o.Name)
	case FlushSet:
		return fmt.Sprintf("flush set %s %s", o.Table, o.Name)
	case AddObject:
		return describeObject(o)
	case DeleteObject:
		return fmt.Sprintf("delete %s %s %s", o.Ref.Kind, o.Table, o.Ref.Name)
	case AddFlowtable:
		return describeFlowtable(o)
	case DeleteFlowtable:
		return fmt.Sprintf("delete flowtable %s %s", o.Table, o.Name)
	case AddElements:
		return describeElements("add", o.Table, o.Set, o.Elements, limit)
	case DeleteElements:
		return describeElements("delete", o.Table, o.Set, o.Elements, limit)
	default:
		return fmt.Sprintf("unknown op %T", op)
	}
}

func describeTable(o AddTable) string {
	var parts []string
	if o.Dormant {
		parts = append(parts, "flags dormant;")
	}
	if o.Comment != "" {
		parts = append(parts, fmt.Sprintf("comment %q;", o.Comment))
	}
	return fmt.Sprintf("add table %s%s", o.Table, block(parts))
}

func describeChain(o AddChain) string {
	if o.Chain == nil {
		return fmt.Sprintf("add chain %s (nil)", o.Table)
	}
	var parts []string
	if base := o.Chain.Base; base != nil {
		at := "hook " + hookName(o.Table.Family, base.Hook)
		if base.Device != "" {
			at += fmt.Sprintf(" device %q", base.Device)
		}
		if base.Devices != "" {
			at += " " + describeDevices(base.Devices.List())
		}
		policy := "accept"
		if base.Drop {
			policy = "drop"
		}
		parts = append(parts, fmt.Sprintf("type %s %s priority %d; policy %s;", base.Type, at, base.Priority, policy))
		if base.Offload {
			parts = append(parts, "flags offload;")
		}
	}
	if o.Chain.Comment != "" {
		parts = append(parts, fmt.Sprintf("comment %q;", o.Chain.Comment))
	}
	return fmt.Sprintf("add chain %s %s%s", o.Table, o.Chain.Name, block(parts))
}

// hookName returns the name of a hook number: enum nf_inet_hooks, nf_arp_hooks
// and nf_dev_hooks.
func hookName(family nft.Family, hook uint32) string {
	names := []string{"prerouting", "input", "forward", "output", "postrouting", "ingress"}
	switch family {
	case nft.FamilyARP:
		names = []string{"input", "output", "forward"}
	case nft.FamilyNetdev:
		names = []string{"ingress", "egress"}
	}
	if int64(hook) >= int64(len(names)) {
		return fmt.Sprintf("%d", hook)
	}
	return names[hook]
}

func describeRule(o AddRule) string {
	var b strings.Builder
	switch {
	case o.After == nil:
		fmt.Fprintf(&b, "insert rule %s %s", o.Table, o.Chain)
	case o.After.N != 0:
		fmt.Fprintf(&b, "add rule %s %s handle %d", o.Table, o.Chain, o.After.N)
	default:
		fmt.Fprintf(&b, "add rule %s %s", o.Table, o.Chain)
	}
	if o.Rule == nil {
		return b.String() + " (nil)"
	}
	fmt.Fprintf(&b, " %s", o.Rule.Text)
	if o.Rule.Comment != "" {
		fmt.Fprintf(&b, " comment %q", o.Rule.Comment)
	}
	return b.String()
}

// handleOf returns a handle's number, 0 where it has none yet.
func handleOf(h *Handle) uint64 {
	if h == nil {
		return 0
	}
	return h.N
}

func describeSet(o AddSet) string {
	if o.Set == nil {
		return fmt.Sprintf("add set %s (nil)", o.Table)
	}
	s := o.Set
	noun, types := "set", strings.Join(s.Key.Names, " . ")
	if s.Map {
		noun = "map"
		data := strings.Join(s.Data.Names, " . ")
		if s.Verdict {
			data = "verdict"
		}
		if s.Object != "" {
			data = string(s.Object)
		}
		types += " : " + data
	}
	parts := []string{"type " + types + ";"}
	var flags []string
	for _, f := range []struct {
		bit  uint32
		name string
	}{
		{set.FlagConstant, "constant"}, {set.FlagInterval, "interval"},
		{set.FlagTimeout, "timeout"}, {set.FlagEval, "dynamic"},
	} {
		if s.Flags&f.bit != 0 {
			flags = append(flags, f.name)
		}
	}
	if len(flags) > 0 {
		parts = append(parts, "flags "+strings.Join(flags, ",")+";")
	}
	for _, d := range []struct {
		word  string
		value time.Duration
	}{{"timeout", s.Timeout}, {"gc-interval", s.GCInterval}} {
		if d.value != 0 {
			parts = append(parts, d.word+" "+datatype.FormatDuration(d.value)+";")
		}
	}
	if s.Size != 0 {
		parts = append(parts, fmt.Sprintf("size %d;", s.Size))
	}
	if s.Memory {
		parts = append(parts, "policy memory;")
	}
	if s.AutoMerge {
		parts = append(parts, "auto-merge;")
	}
	if s.Comment != "" {
		parts = append(parts, fmt.Sprintf("comment %q;", s.Comment))
	}
	return fmt.Sprintf("add %s %s %s%s", noun, o.Table, s.Name, block(parts))
}

// block puts declarations into braces; nothing for none.
func block(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return " { " + strings.Join(parts, " ") + " }"
}

func describeElements(verb string, table nft.TableID, set *set.Set, elements []set.Element, limit int) string {
	var b strings.Builder
	if set == nil {
		return fmt.Sprintf("%s element %s (nil)", verb, table)
	}
	fmt.Fprintf(&b, "%s element %s %s {", verb, table, set.Name)
	for i, e := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		if i == limit {
			fmt.Fprintf(&b, " ... (%d more)", len(elements)-limit)
			break
		}
		b.WriteByte(' ')
		if e.Key == "" {
			b.WriteByte('*')
		} else {
			b.WriteString(set.FormatKey(e))
		}
		if verb != "add" {
			continue
		}
		for _, text := range e.Stateful() {
			b.WriteString(" " + text)
		}
		if e.Timeout != 0 {
			b.WriteString(" timeout " + datatype.FormatDuration(e.Timeout))
		}
		if left := e.Expires(); left != 0 {
			b.WriteString(" expires " + datatype.FormatDuration(left))
		}
		if e.Comment != "" {
			fmt.Fprintf(&b, " comment %q", e.Comment)
		}
		if set.Map && e.Data != "" {
			b.WriteString(" : " + set.FormatData(e))
		}
	}
	b.WriteString(" }")
	return b.String()
}

// String returns the op in nft's words.
func (o AddTable) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words.
func (o DeleteTable) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words.
func (o AddChain) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words.
func (o DeleteChain) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words. A rule that goes after one of the same
// batch is an add without a place.
func (o AddRule) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words.
func (o DeleteRule) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words.
func (o AddSet) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words.
func (o DeleteSet) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words.
func (o FlushSet) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words, with a few elements at most.
func (o AddElements) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words, with a few elements at most.
func (o DeleteElements) String() string { return describe(o, summaryElements) }
