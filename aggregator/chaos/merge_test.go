package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// held is a fragment with the content that was acknowledged.
type held struct {
	publisher, name string
	content         *content
}

// ruleset is what tables should hold, or hold: by "family name", each a list of
// lines that say one thing each, such as "set s0 element 10.0.0.1", sorted.
type ruleset map[string][]string

// merge unites fragments as DESIGN.md says: in order of (priority, publisher,
// name), the elements of all, the value of the first, the rules of one after
// those of the other. It is plain on purpose.
func merge(fragments []held) ruleset {
	said := map[string]map[string]string{}
	say := func(id, what, value string) {
		if said[id] == nil {
			said[id] = map[string]string{}
		}
		if _, ok := said[id][what]; !ok {
			said[id][what] = value
		}
	}
	rules := map[string]int{}
	for _, h := range inOrder(fragments) {
		for id, t := range h.content.tables {
			say(id, "table", "")
			for name, c := range t.chains {
				say(id, "chain "+name, declarationOfChain(c))
				for _, r := range c.rules {
					n := rules[id+" "+name]
					rules[id+" "+name]++
					say(id, fmt.Sprintf("chain %s rule %04d", name, n), r.line())
				}
			}
			for name, s := range t.sets {
				kind := "set "
				if s.isMap {
					kind = "map "
				}
				say(id, kind+name, declarationOfSet(s))
				for key, e := range s.elements {
					say(id, kind+name+" element "+key, e.line())
				}
			}
		}
	}
	out := ruleset{}
	for id, what := range said {
		for _, w := range sorted(what) {
			out[id] = append(out[id], w+" = "+what[w])
		}
	}
	return out
}

func declarationOfChain(c *chain) string {
	if c.base[0] == "" {
		return ""
	}
	return fmt.Sprintf("type %s hook %s priority %s; policy accept;", c.base[0], c.base[1], c.base[2])
}

func declarationOfSet(s *set) string {
	d := "type " + s.typ
	if len(s.flags) > 0 {
		d += "; flags " + strings.Join(s.flags, ",")
	}
	if s.size > 0 {
		d += fmt.Sprintf("; size %d", s.size)
	}
	if s.comment != "" {
		d += fmt.Sprintf("; comment %q", s.comment)
	}
	return d
}

func (r rule) line() string {
	if r.comment == "" {
		return r.text
	}
	return fmt.Sprintf("%s comment %q", r.text, r.comment)
}

func (e element) line() string {
	if e.comment == "" {
		return e.value
	}
	return strings.TrimSpace(fmt.Sprintf("%s comment %q", e.value, e.comment))
}

// inOrder returns the fragments that are there in the order of precedence.
func inOrder(fragments []held) []held {
	fragments = slices.DeleteFunc(slices.Clone(fragments), func(h held) bool { return h.content == nil })
	slices.SortFunc(fragments, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.content.priority, b.content.priority), strings.Compare(a.publisher, b.publisher), strings.Compare(a.name, b.name))
	})
	return fragments
}

// shadowed counts the elements of each fragment whose value another one hides.
func shadowed(fragments []held) map[string]uint64 {
	first := map[string]string{}
	out := map[string]uint64{}
	for _, h := range inOrder(fragments) {
		for id, t := range h.content.tables {
			for name, s := range t.sets {
				for key, e := range s.elements {
					at := id + " " + name + " " + key
					if _, ok := first[at]; !ok {
						first[at] = e.value
					}
					if first[at] != e.value {
						out[h.publisher+"/"+h.name]++
					}
				}
			}
		}
	}
	return out
}

// difference says what the kernel lacks (-) and has too much (+), at most 20
// lines of each table; "" when nothing.
func difference(want, got ruleset) string {
	var b strings.Builder
	for _, id := range slices.Compact(slices.Sorted(slices.Values(append(sorted(want), sorted(got)...)))) {
		in := map[string]int{}
		for _, l := range want[id] {
			in[l]++
		}
		for _, l := range got[id] {
			in[l]--
		}
		shown := 0
		for _, l := range sorted(in) {
			if in[l] == 0 {
				continue
			}
			if shown++; shown > 20 {
				fmt.Fprintf(&b, "table %s: ...\n", id)
				break
			}
			sign := "-"
			if in[l] < 0 {
				sign = "+"
			}
			fmt.Fprintf(&b, "table %s: %s %s\n", id, sign, l)
		}
	}
	return b.String()
}
