package compile

import (
	"fmt"
	"strings"
)

// DumpSets returns a rule's anonymous sets as `nft --debug=netlink` prints
// them, each followed by its elements in lines of their own.
func (r *Rule) DumpSets() string {
	var b strings.Builder
	for _, a := range r.Anonymous {
		if a.Set.Flags&SetEval != 0 {
			continue // a meter's, which has a name and no elements
		}
		fmt.Fprintf(&b, "%s %x size %d\n", a.Set.Name, a.Set.Flags, a.Set.Size)
		for _, e := range kernelElements(a) {
			fmt.Fprintf(&b, "  element %s\n", e)
		}
	}
	return b.String()
}

// kernelElements prints the elements of a set as the kernel gets them: an
// interval is a begin and an end.
func kernelElements(a AnonymousSet) []string {
	var out []string
	plain := a.Set.Flags&SetInterval != 0 && a.Set.Flags&SetConcat == 0
	for i, e := range a.Elements {
		key, data := dumpWords(e.Key), dumpElementData(a.Set, e)
		if e.Key == "" {
			out = append(out, ": "+data+"2 [end]"+dumpComment(e, false))
			continue
		}
		if !plain {
			if e.KeyEnd != "" {
				key += " - " + dumpWords(e.KeyEnd)
			}
			out = append(out, key+" : "+data+"0 [end]"+dumpComment(e, false))
			continue
		}
		if i == 0 && strings.Trim(e.Key, "\x00") != "" {
			out = append(out, dumpWords(strings.Repeat("\x00", len(e.Key)))+" : 1 [end]")
		}
		end, ok := nextKey(e.KeyEnd)
		out = append(out, key+" : "+data+"0 [end]"+dumpComment(e, !ok))
		if ok && (i == len(a.Elements)-1 || a.Elements[i+1].Key != end) {
			out = append(out, dumpWords(end)+" : 1 [end]")
		}
	}
	return out
}

// dumpComment prints the userdata of an element: its comment, and whether its
// interval is open.
func dumpComment(e Element, open bool) string {
	b, _ := ElementUserData(e.Comment, open)
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

// dumpWords prints data in words without their 0x, as elements have them.
func dumpWords(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(dumpData([]byte(s))), "0x", "")
}

// dumpElementData prints what a map gives for an element.
func dumpElementData(s *Set, e Element) string {
	switch {
	case s.Verdict:
		v, err := ParseVerdictData(e.Data)
		if err != nil {
			return err.Error()
		}
		word, chain, ok := strings.Cut(v.String(), " ")
		if ok {
			return word + " -> " + chain + " "
		}
		return word + " "
	case s.Object != "":
		return "" // nft does not print the name
	case s.Map:
		return dumpWords(e.Data) + " "
	default:
		return ""
	}
}

// nextKey returns the key after an interval's end.
func nextKey(end string) (string, bool) {
	b := []byte(end)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] != 0 {
			return string(b), true
		}
	}
	return "", false
}
