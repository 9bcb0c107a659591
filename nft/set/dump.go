package set

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/userdata"
)

// DumpDeclaration prints the declaration as `nft --debug=netlink`.
func (s *Set) DumpDeclaration(table string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %x", s.Name, table, s.Flags)
	if s.Timeout > 0 {
		fmt.Fprintf(&b, " timeout %dms", s.Timeout.Milliseconds())
	}
	if s.GCInterval > 0 {
		fmt.Fprintf(&b, " gc_interval %dms", s.GCInterval.Milliseconds())
	}
	if s.Memory {
		// NFT_SET_POL_MEMORY
		b.WriteString(" policy 1")
	}
	if s.Size > 0 {
		fmt.Fprintf(&b, " size %d", s.Size)
	}
	b.WriteByte('\n')
	return b.String()
}

// DumpElements prints elements as `nft --debug=netlink`.
func (s *Set) DumpElements(table string, elems []Element) string {
	if len(elems) == 0 {
		return ""
	}
	if s.Flags&FlagInterval != 0 && s.Flags&FlagAnonymous == 0 {
		if sorted, err := s.Normalize(elems); err == nil {
			elems = sorted
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s 0\n", s.Name, table)
	for _, e := range KernelElements(Anonymous{Set: s, Elements: elems}) {
		key, rest, _ := strings.Cut(e, ": ")
		key = strings.Replace(key, " - ", "  - ", 1)
		rest = strings.Replace(rest, "[end] userdata", "[end]  userdata", 1)
		b.WriteString("\telement " + key + " : " + rest)
	}
	b.WriteByte('\n')
	return b.String()
}

// KernelElements returns the kernel's elements as in `nft --debug=netlink`.
func KernelElements(a Anonymous) []string {
	var out []string
	plain := a.Set.Ranges()
	if a.Set.NullEnd(a.Elements) {
		out = append(out, dumpWords(strings.Repeat("\x00", int(a.Set.Key.Len)))+" : 1 [end]")
	}
	for i, e := range a.Elements {
		key, data := dumpWords(e.Key), dumpElementData(a.Set, e)
		if e.Key == "" {
			out = append(out, ": "+data+"2 [end]"+DumpComment(e, false))
			continue
		}
		if !plain {
			if e.KeyEnd != "" {
				key += " - " + dumpWords(e.KeyEnd)
			}
			out = append(out, key+" : "+data+"0 [end]"+DumpComment(e, false))
			continue
		}
		next := []byte(e.KeyEnd)
		ok := increment(next)
		out = append(out, key+" : "+data+"0 [end]"+DumpComment(e, !ok))
		if ok && !a.Set.EndsAtNext(a.Elements, i) {
			out = append(out, dumpWords(string(next))+" : 1 [end]")
		}
	}
	return out
}

// Ranges reports whether an interval is two elements in the kernel: its first key, and the first
// key after it.
func (s *Set) Ranges() bool { return s.Flags&FlagInterval != 0 && s.Flags&FlagConcat == 0 }

// NullEnd reports whether nft sends an end with the key 0, for the gap before the first interval.
func (s *Set) NullEnd(elems []Element) bool {
	return s.Ranges() && len(elems) > 0 && strings.Trim(elems[0].Key, "\x00") != ""
}

// Compare is nft's order in sets with ranges: by key, the catch-all element last.
func Compare(a, b Element) int {
	if (a.Key == "") != (b.Key == "") {
		return cmp.Compare(b.Key, a.Key)
	}
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.KeyEnd, b.KeyEnd))
}

// EndsAtNext reports whether nft omits the i-th element's end, because the next element begins
// there.
func (s *Set) EndsAtNext(elems []Element, i int) bool {
	return s.Flags&FlagAnonymous != 0 && i+1 < len(elems) && touches(elems[i].KeyEnd, elems[i+1].Key)
}

// DumpComment returns an element's userdata as in `nft --debug=netlink`.
func DumpComment(e Element, open bool) string {
	b, _ := userdata.AppendElement(nil, e.Comment, open)
	if len(b) == 0 {
		return ""
	}
	s := ""
	for _, c := range b {
		if c >= ' ' && c < 0x7f {
			s += string(rune(c))
		} else {
			s += fmt.Sprintf("\\x%02x", c)
		}
	}
	return " userdata = { " + s + " }"
}

func dumpWords(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(expr.DumpData([]byte(s))), "0x", "")
}

func dumpElementData(s *Set, e Element) string {
	switch {
	case s.Verdict:
		return expr.FormatVerdict(e.Data) + " "
	case s.Object != "":
		return "" // nft does not print the name
	case s.Map:
		return dumpWords(e.Data) + " "
	default:
		return ""
	}
}
