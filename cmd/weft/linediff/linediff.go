package linediff

import (
	"fmt"
	"slices"
	"strings"
)

// context is how many equal lines are shown around a difference.
const context = 3

// line is a line of the result. Its sign is ' ', '-' or '+'.
type line struct {
	sign byte
	text string
}

// Unified returns the differences of two texts as diff -u prints them, without the names of
// files. It is empty if the texts are equal.
func Unified(a, b string) string {
	var out strings.Builder
	all := compare(split(a), split(b))
	for from, old, added := 0, 1, 1; from < len(all); {
		first := slices.IndexFunc(all[from:], func(l line) bool { return l.sign != ' ' })
		if first < 0 {
			break
		}
		begin := max(from, from+first-context)
		old, added = old+begin-from, added+begin-from
		end := hunkEnd(all, from+first)
		nOld, nNew := count(all[begin:end])
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(old, nOld), span(added, nNew))
		for _, l := range all[begin:end] {
			fmt.Fprintf(&out, "%c%s\n", l.sign, l.text)
		}
		from, old, added = end, old+nOld, added+nNew
	}
	return out.String()
}

// split returns the lines of a text.
func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// hunkEnd returns where a hunk ends whose first difference is at i: the differences after it
// that are closer than twice the context belong to it.
func hunkEnd(all []line, i int) int {
	last := i
	for ; i < len(all) && i-last <= 2*context; i++ {
		if all[i].sign != ' ' {
			last = i
		}
	}
	return min(len(all), last+1+context)
}

// count returns how many lines the two texts have in a hunk.
func count(lines []line) (old, added int) {
	for _, l := range lines {
		if l.sign != '+' {
			old++
		}
		if l.sign != '-' {
			added++
		}
	}
	return old, added
}

// span is the place of a hunk in a text.
func span(from, n int) string {
	if n == 0 {
		from--
	}
	if n == 1 {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d,%d", from, n)
}

// compare returns the lines of both texts.
func compare(a, b []string) (out []line) {
	add := func(sign byte, lines []string) {
		for _, l := range lines {
			out = append(out, line{sign, l})
		}
	}
	// between adds what is between two anchors.
	between := func(a, b []string) {
		head := 0
		for head < min(len(a), len(b)) && a[head] == b[head] {
			head++
		}
		add(' ', a[:head])
		a, b = a[head:], b[head:]
		tail := 0
		for tail < min(len(a), len(b)) && a[len(a)-1-tail] == b[len(b)-1-tail] {
			tail++
		}
		add('-', a[:len(a)-tail])
		add('+', b[:len(b)-tail])
		add(' ', a[len(a)-tail:])
	}
	i, j := 0, 0
	for _, p := range anchors(a, b) {
		between(a[i:p.a], b[j:p.b])
		add(' ', a[p.a:p.a+1])
		i, j = p.a+1, p.b+1
	}
	between(a[i:], b[j:])
	return out
}

// pair is a line that both texts have.
type pair struct{ a, b int }

// anchors returns the longest series of lines that occur once in each text and are in the same
// order in both.
func anchors(a, b []string) []pair {
	where := make(map[string]int, len(b))
	for j, l := range b {
		if _, ok := where[l]; ok {
			j = -1
		}
		where[l] = j
	}
	times := make(map[string]int, len(a))
	for _, l := range a {
		times[l]++
	}
	// ends has the last pair of the best series of each length, and before the pair that
	// comes before each one.
	var pairs []pair
	var ends, before []int
	for i, l := range a {
		j, ok := where[l]
		if !ok || j < 0 || times[l] != 1 {
			continue
		}
		n, _ := slices.BinarySearchFunc(ends, j, func(p, j int) int { return pairs[p].b - j })
		previous := -1
		if n > 0 {
			previous = ends[n-1]
		}
		pairs, before = append(pairs, pair{i, j}), append(before, previous)
		if n == len(ends) {
			ends = append(ends, 0)
		}
		ends[n] = len(pairs) - 1
	}
	if len(ends) == 0 {
		return nil
	}
	var out []pair
	for p := ends[len(ends)-1]; p >= 0; p = before[p] {
		out = append(out, pairs[p])
	}
	slices.Reverse(out)
	return out
}
