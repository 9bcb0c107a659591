package access

import (
	"fmt"
	"math/bits"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Accept names publishers with honoured accepts: packets that their rules accept pass the base
// chains of the publisher with the Accept.
type Accept struct {
	Publishers []string
	// the bit of the packet mark for accepted packets
	Mark uint32
}

// String returns the Accept for people.
func (a *Accept) String() string {
	if a == nil {
		return "none"
	}
	return fmt.Sprintf("%s, by mark %#x", join(a.Publishers), a.Mark)
}

// accept reads a publisher's field accept.
func (p *parser) accept(path string, n *yaml.Node, pub *Publisher) {
	a := &Accept{}
	given := p.mapping(path, n, map[string]field{
		"publishers": listOf(p, &a.Publishers, text(p, "a publisher's name", checked(checkName))),
		"mark":       into(&a.Mark, p.mask),
	})
	switch {
	case given == nil:
	case given["publishers"] == 0:
		p.Add(n.Line, path, "it names no publishers: give it publishers")
	case given["mark"] == 0:
		p.Add(n.Line, path, "no mark is given: give it a bit of the packet mark that nothing else uses, such as 0x10")
	case a.Mark != 0 && (bits.OnesCount32(a.Mark) != 1 || a.Mark == MasqueradeMark):
		p.Add(given["mark"], path+".mark", "got %#x: want one bit, and not %#x, which marks what is masqueraded", a.Mark, uint32(MasqueradeMark))
	default:
		pub.Accept = a
	}
}

// acceptAll grants the marks of all accepts, and reports marks that other publishers could set.
func (p *parser) acceptAll() {
	for i, pub := range p.policy.Publishers {
		if pub.Accept == nil {
			continue
		}
		path, line := fmt.Sprintf("publishers[%d].accept", i), pub.lines["accept"]
		for _, name := range pub.Accept.Publishers {
			switch p.policy.byName[name] {
			case nil:
				p.Add(line, path+".publishers", "there is no publisher %s: add it, or remove the name", name)
			case pub:
				p.Add(line, path+".publishers", "publisher %s need not name itself: remove the name", name)
			}
		}
		for _, other := range p.policy.Publishers {
			named := slices.Contains(pub.Accept.Publishers, other.Name)
			if other == pub {
				continue
			}
			if !named && other.Allow.Marks&pub.Accept.Mark != 0 {
				p.Add(line, path+".mark", "publisher %s may set bit %#x (%s): its packets would pass too; use another bit", other.Name, pub.Accept.Mark, other.Where("allow.marks"))
			}
			if named {
				other.Honoured |= pub.Accept.Mark
			}
		}
	}
}
