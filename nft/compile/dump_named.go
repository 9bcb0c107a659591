package compile

import (
	"fmt"
	"strings"
)

// DumpDeclaration returns the declaration of a set or map, named or anonymous, as
// `nft --debug=netlink` prints it.
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

// DumpElements returns elements of the set or map as `nft --debug=netlink` prints
// them; nothing for none. Intervals are brought into the order of their keys.
func (s *Set) DumpElements(table string, elems []Element) string {
	if len(elems) == 0 {
		return ""
	}
	if s.Flags&SetInterval != 0 && s.Flags&SetAnonymous == 0 {
		if sorted, err := s.Normalize(elems); err == nil {
			elems = sorted
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s 0\n", s.Name, table)
	for _, e := range kernelElements(AnonymousSet{Set: s, Elements: elems}) {
		// libnftnl has a blank behind every word of a key, and another before
		// what follows.
		key, rest, _ := strings.Cut(e, ": ")
		key = strings.Replace(key, " - ", "  - ", 1)
		rest = strings.Replace(rest, "[end] userdata", "[end]  userdata", 1)
		b.WriteString("\telement " + key + " : " + rest)
	}
	b.WriteByte('\n')
	return b.String()
}

// DumpComment returns the rule's comment as `nft --debug=netlink` prints the
// userdata of a rule; nothing for none.
func (r *Rule) DumpComment() string {
	words := dumpComment(Element{Comment: r.Comment}, false)
	if words == "" {
		return ""
	}
	return " " + words + "\n"
}
