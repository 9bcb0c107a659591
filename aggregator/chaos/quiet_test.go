package chaos

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// all returns all fragments.
func (c *conductor) all() (out []*fragment) {
	for _, p := range c.publishers {
		out = append(out, p.fragments...)
	}
	return out
}

// wake lets a stopped publisher go on.
func (c *conductor) wake(p *publisher) {
	if p.stopped {
		p.signal(syscall.SIGCONT)
		p.stopped = false
		c.note("%s goes on", p.name)
	}
}

// finish makes a fragment hold something that it may hold. One of the contents
// must be accepted, as it is there already; but others may have to come back
// first.
func (c *conductor) finish(f *fragment) {
	c.wake(f.owner)
	c.await(f.String()+" is answered", func() bool { return len(f.pending) == 0 })
	order := c.rng.Perm(8)
	deadline := time.Now().Add(patience)
	for n := 0; f.unsettled; n++ {
		if time.Now().After(deadline) {
			c.fatal("%s is refused in every form that it may have: %d of them", f, len(f.possible))
		}
		to := f.possible[order[n%len(order)]%len(f.possible)]
		c.send(f, to, false)
		c.await(f.String()+" is settled", func() bool { return len(f.pending) == 0 })
		if f.unsettled {
			c.others(f)
			// A unary call fails at once while the client waits to connect again.
			c.pump(time.After(20 * time.Millisecond))
		}
	}
}

// others puts the other fragments that are not settled, once each: what was
// refused may refer to them.
func (c *conductor) others(f *fragment) {
	for _, o := range c.all() {
		if o != f && o.unsettled && len(o.pending) == 0 {
			c.send(o, o.possible[c.rng.IntN(len(o.possible))], false)
		}
	}
	c.allAnswered()
}

// allAnswered waits until nothing is on its way.
func (c *conductor) allAnswered() {
	for _, p := range c.publishers {
		c.wake(p)
	}
	c.await("everything is answered", func() bool { return len(c.inflight) == 0 })
}

// rest brings everything to rest: every publisher is up, answered and in sync,
// every fragment settled.
func (c *conductor) rest() {
	for _, p := range c.publishers {
		c.wake(p)
	}
	c.await("all publishers are up", func() bool {
		return !slices.ContainsFunc(c.publishers, func(p *publisher) bool { return !p.ready })
	})
	c.allAnswered()
	c.await("all sessions are in sync", func() bool {
		return !slices.ContainsFunc(c.all(), func(f *fragment) bool { return f.away })
	})
	for _, f := range c.all() {
		if f.unsettled {
			c.finish(f)
		}
	}
	c.lossy = false
	c.partial = c.partial && slices.ContainsFunc(c.all(), func(f *fragment) bool { return len(f.fading) > 0 })
	for _, f := range c.all() {
		f.busy = false
	}
}

// quiet compares the kernel with the merge of what was acknowledged.
func (c *conductor) quiet() {
	c.t.Helper()
	c.rest()
	c.sum.quiet++
	c.note("quiet: damaged=%t unsteady=%t", c.damaged, c.unsteady)
	want := c.expected()
	if d := c.compare(want); d != "" {
		if !c.damaged && !c.unsteady {
			c.fatal("the kernel is not the merge of what was acknowledged:\n%s", d)
		}
		began := time.Now()
		for d != "" {
			if time.Since(began) > patience {
				c.fatal("after %v the kernel is not the merge of what was acknowledged:\n%s", patience, d)
			}
			c.pump(time.After(20 * time.Millisecond))
			d = c.compare(want)
		}
	}
	c.damaged, c.unsteady, c.partial = false, false, false
	for _, f := range c.all() {
		f.fading = nil
	}
	c.checkList()
	// A publisher whose withdrawal was refused must say that it goes on.
	for _, f := range c.all() {
		if f.silent {
			c.send(f, f.acked, false)
		}
	}
	c.allAnswered()
}

// fragments returns what is acknowledged.
func (c *conductor) fragments() (out []held) {
	for _, f := range c.all() {
		out = append(out, held{f.owner.name, f.name, f.acked})
	}
	return out
}

// expected is what the kernel should hold, the tables of others included.
func (c *conductor) expected() ruleset {
	want := merge(c.fragments())
	for id, lines := range c.foreign.tables {
		want[id] = lines
	}
	return want
}

// compare lists the kernel and says how it differs.
func (c *conductor) compare(want ruleset) string {
	c.t.Helper()
	got, err := listRuleset(c.node)
	c.must(err)
	return difference(want, got)
}

// checkList compares what the aggregator says of its fragments.
func (c *conductor) checkList() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cl, err := client.Dial(ctx, client.Config{Socket: c.socket, Publisher: "conductor"})
	c.must(err)
	defer cl.Close()
	list, err := cl.List(ctx)
	c.must(err)
	want := make(map[string]*content)
	for _, f := range c.all() {
		if f.acked != nil {
			want[f.String()] = f.acked
		}
	}
	for _, s := range list.GetFragments() {
		name := s.GetFragment().Text()
		h := want[name]
		delete(want, name)
		// Lifetime and elements of an adopted one are known once it is back.
		known := s.GetState() != weftv1.FragmentStatus_STATE_ADOPTED
		if h == nil || s.GetPriority() != h.GetPriority() || known && (s.GetLifetime() != h.GetLifetime() || int(s.GetElements()) != elements(h)) {
			c.fatal("%s is listed as %v, want %v", name, s, h)
		}
	}
	if len(want) > 0 {
		c.fatal("%v are not listed", sorted(want))
	}
}

// checkDown compares the kernel while no aggregator runs: each fragment has one
// of the contents that it may have. It gives up where that is too many.
func (c *conductor) checkDown() {
	c.t.Helper()
	if c.damaged || c.partial {
		return
	}
	options := [][]held{nil}
	for _, f := range c.all() {
		may := f.options()
		if f.sessionBound() && (f.owner.ended || f.away) && !slices.Contains(may, nil) {
			may = append(may, nil)
		}
		var next [][]held
		for _, o := range options {
			for _, m := range may {
				next = append(next, append(slices.Clip(o), held{f.owner.name, f.name, m}))
			}
		}
		if options = next; len(options) > 64 {
			return
		}
	}
	c.sum.down++
	got, err := listRuleset(c.node)
	c.must(err)
	best := ""
	for _, o := range options {
		want := merge(o)
		for id, lines := range c.foreign.tables {
			want[id] = lines
		}
		d := difference(want, got)
		if d == "" {
			return
		}
		if best == "" || len(d) < len(best) {
			best = d
		}
	}
	c.fatal("the aggregator was killed, and the kernel is not the merge of what may have been committed (%d ways); the nearest differs by:\n%s", len(options), best)
}

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
		for _, t := range h.content.GetTables() {
			id := tableID(t)
			say(id, "table", "")
			for _, c := range t.GetChains() {
				name := c.GetName()
				say(id, "chain "+name, declarationOfChain(c))
				for _, r := range c.GetRules() {
					n := rules[id+" "+name]
					rules[id+" "+name]++
					say(id, fmt.Sprintf("chain %s rule %04d", name, n), line(r.GetText(), r.GetComment()))
				}
			}
			for kind, sets := range map[string][]*weftv1.Set{"set ": t.GetSets(), "map ": t.GetMaps()} {
				for _, s := range sets {
					say(id, kind+s.GetName(), declarationOfSet(s))
					for _, e := range s.GetElements() {
						say(id, kind+s.GetName()+" element "+e.GetKey(), line(e.GetValue(), e.GetComment()))
					}
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

func declarationOfChain(c *weftv1.Chain) string {
	if c.GetType() == "" {
		return ""
	}
	return fmt.Sprintf("type %s hook %s priority %s; policy accept;", c.GetType(), c.GetHook(), c.GetPriority())
}

func declarationOfSet(s *weftv1.Set) string {
	d := "type " + s.GetType()
	if len(s.GetFlags()) > 0 {
		d += "; flags " + strings.Join(s.GetFlags(), ",")
	}
	if s.GetSize() > 0 {
		d += fmt.Sprintf("; size %d", s.GetSize())
	}
	if s.GetComment() != "" {
		d += fmt.Sprintf("; comment %q", s.GetComment())
	}
	return d
}

// line is a rule or the value of an element, with its comment.
func line(text, comment string) string {
	if comment == "" {
		return text
	}
	return strings.TrimSpace(fmt.Sprintf("%s comment %q", text, comment))
}

// inOrder returns the fragments that are there in the order of precedence.
func inOrder(fragments []held) []held {
	fragments = slices.DeleteFunc(slices.Clone(fragments), func(h held) bool { return h.content == nil })
	slices.SortFunc(fragments, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.content.GetPriority(), b.content.GetPriority()), strings.Compare(a.publisher, b.publisher), strings.Compare(a.name, b.name))
	})
	return fragments
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

// listRuleset reads all tables of a namespace as "nft list ruleset" prints
// them.
func listRuleset(ns *nfttest.NS) (ruleset, error) {
	text, err := ns.Output("", "nft", "list", "ruleset")
	if err != nil {
		return nil, err
	}
	return parseListing(text)
}

// listing reads what nft prints, line by line.
type listing struct {
	out ruleset
	// table is "family name"; object "chain c", "set s" or "map m"; both ""
	// outside of one.
	table, object string
	rules         int
	declaration   []string
	// elements collects the text between braces over several lines.
	elements   strings.Builder
	inElements bool
}

// parseListing turns a listing into the lines of merge.
func parseListing(text string) (ruleset, error) {
	l := &listing{out: ruleset{}}
	for line := range strings.Lines(text) {
		if err := l.line(strings.TrimSpace(line)); err != nil {
			return nil, err
		}
	}
	if l.table != "" {
		return nil, fmt.Errorf("parse listing: table %s has no end", l.table)
	}
	for id := range l.out {
		slices.Sort(l.out[id])
	}
	return l.out, nil
}

func (l *listing) say(what, value string) {
	l.out[l.table] = append(l.out[l.table], what+" = "+value)
}

func (l *listing) line(line string) error {
	switch {
	case line == "":
	case l.inElements:
		return l.more(line)
	case l.table == "":
		name, ok := strings.CutPrefix(line, "table ")
		name, open := strings.CutSuffix(name, " {")
		if name, _, _ = strings.Cut(name, " { #"); !ok || !(open || strings.Contains(line, "{ #")) {
			return fmt.Errorf("parse listing: want a table, got %q", line)
		}
		l.table = name
		l.say("table", "")
	case line == "}" && l.object != "":
		l.say(l.object, strings.Join(l.declaration, "; "))
		l.object, l.declaration = "", nil
	case line == "}":
		l.table = ""
	case l.object == "" && (strings.HasPrefix(line, "flags") || strings.HasPrefix(line, "comment ")):
		// Of the table: its owner, and the mark of weft.
	case l.object == "":
		name, ok := strings.CutSuffix(line, " {")
		if !ok {
			return fmt.Errorf("parse listing: want an object in table %s, got %q", l.table, line)
		}
		l.object, l.rules = name, 0
	case strings.HasPrefix(line, "elements = { "):
		l.inElements = true
		return l.more(strings.TrimPrefix(line, "elements = { "))
	case strings.HasPrefix(l.object, "chain ") && !strings.HasPrefix(line, "type "):
		l.say(fmt.Sprintf("%s rule %04d", l.object, l.rules), line)
		l.rules++
	default:
		l.declaration = append(l.declaration, line)
	}
	return nil
}

// more takes a line of elements.
func (l *listing) more(line string) error {
	text, last := strings.CutSuffix(line, " }")
	l.elements.WriteString(text)
	l.elements.WriteByte(' ')
	if !last {
		return nil
	}
	all := strings.TrimSpace(l.elements.String())
	l.elements.Reset()
	l.inElements = false
	for e := range strings.SplitSeq(all, ",") {
		if err := l.element(strings.TrimSpace(e)); err != nil {
			return err
		}
	}
	return nil
}

// elementText is a key, a comment perhaps, and a value perhaps.
var elementText = regexp.MustCompile(`^(\S+(?: \. \S+)*)( comment "[^"]*")?(?: : (.*))?$`)

func (l *listing) element(text string) error {
	m := elementText.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("parse listing: %s of table %s: element %q", l.object, l.table, text)
	}
	l.say(l.object+" element "+m[1], strings.TrimSpace(m[3]+m[2]))
	return nil
}
