package access

import (
	"fmt"
	"math/bits"
	"regexp"
	"slices"

	"github.com/weft-proxy/weft/nft"
)

func (d *Decoder) has(path string, fields ...string) bool {
	return slices.ContainsFunc(fields, func(field string) bool { return d.Lines[path+"."+field] != 0 })
}

// valid names of publishers, as in admission.CheckIdentity
var publisherName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

func checkName(name string) error {
	if !publisherName.MatchString(name) {
		return fmt.Errorf("got %q: want 1 to 63 of [a-z0-9._-], a letter or digit first", clip(name))
	}
	return nil
}

func (p *Publisher) check(d *Decoder, path string, line int) {
	if !d.has(path, "name") {
		d.Add(line, path, "the publisher has no name: give it one")
	}
	if !d.has(path, "match") {
		d.Add(line, path, "the publisher has no match: say with uid, gid or cgroup who it is")
	}
}

func (m *Match) check(d *Decoder, path string, line int) {
	if !d.has(path, "uid", "gid", "cgroup") {
		d.Add(line, path, "nothing says whose process it is: give it a uid, gid or cgroup (every user can run an executable)")
	}
}

const masqueradeMark = "masqueradeMark"

func (a *Allow) check(*Decoder, string, int) {
	a.Granted[nft.ClassLog.String()] = a.LogRate != 0
	a.Granted[nft.ClassMarks.String()] = a.Marks != 0 || a.Granted[masqueradeMark]
	for _, c := range nft.Classes() {
		if a.Granted[c.String()] {
			a.Classes = a.Classes.With(c)
		}
	}
	if a.Marks &^= MasqueradeMark; a.Granted[masqueradeMark] {
		a.Marks |= MasqueradeMark
	}
	a.Granted = nil
}

func (t *TablePattern) check(d *Decoder, path string, line int) {
	if !d.has(path, "name") {
		d.Add(line, path, `the table has no name: give it one, or "*" for each`)
	}
}

func (s *SharedPattern) check(d *Decoder, path string, line int) {
	switch {
	case !d.has(path, "table"):
		d.Add(line, path, `the entry has no table: give it one, or "*" for each`)
	case !d.has(path, "chains", "sets", "objects", "flags"):
		d.Add(line, path, "the entry allows nothing: give it chains, sets, objects or flags")
	}
}

func (r *Range) check(d *Decoder, path string, line int) {
	switch {
	case !d.has(path, "min", "max"):
		d.Add(line, path, "neither min nor max is given: give one of them, or leave the field out")
	case r.Min != nil && r.Max != nil && *r.Min > *r.Max:
		d.Add(line, path, "min %d is greater than max %d: nothing would be allowed", *r.Min, *r.Max)
	}
}

func (a *Accept) check(d *Decoder, path string, line int) {
	switch {
	case !d.has(path, "publishers"):
		d.Add(line, path, "it names no publishers: give it publishers")
	case !d.has(path, "mark"):
		d.Add(line, path, "no mark is given: give it a bit of the packet mark that nothing else uses, such as 0x10")
	case a.Mark != 0 && (bits.OnesCount32(a.Mark) != 1 || a.Mark == MasqueradeMark):
		d.Add(d.Lines[path+".mark"], path+".mark", "got %#x: want one bit, and not %#x, which marks what is masqueraded", a.Mark, uint32(MasqueradeMark))
	default:
		return
	}
	*a = Accept{}
}

// acceptAll grants the marks of all accepts, and reports marks in reach of other publishers.
func (p *Policy) acceptAll(d *Decoder) {
	for _, pub := range p.Publishers {
		if pub.Accept == nil {
			continue
		}
		path, line := pub.path+".accept", pub.line("accept")
		for _, name := range pub.Accept.Publishers {
			switch p.byName[name] {
			case nil:
				d.Add(line, path+".publishers", "there is no publisher %s: add it, or remove the name", name)
			case pub:
				d.Add(line, path+".publishers", "publisher %s need not name itself: remove the name", name)
			}
		}
		for _, other := range p.Publishers {
			named := slices.Contains(pub.Accept.Publishers, other.Name)
			if other == pub {
				continue
			}
			if !named && other.Allow.Marks&pub.Accept.Mark != 0 {
				d.Add(line, path+".mark", "publisher %s may set bit %#x (%s): its packets would pass too; use another bit", other.Name, pub.Accept.Mark, other.Where("allow.marks"))
			}
			if named {
				other.Honoured |= pub.Accept.Mark
			}
		}
	}
}
