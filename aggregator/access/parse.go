package access

import (
	"cmp"
	"fmt"
	"math"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weft-proxy/weft/nft"
)

// The values that a configuration must have.
const (
	APIVersion = "weft.dev/v1alpha1"
	Kind       = "Configuration"
)

// Lookup finds the ids of users and groups by their names.
type Lookup struct {
	User, Group func(name string) (uint32, error)
}

// System looks names up in the system's databases.
func System() Lookup {
	return Lookup{
		User: func(name string) (uint32, error) {
			u, err := user.Lookup(name)
			if err != nil {
				return 0, err
			}
			return parseID(u.Uid)
		},
		Group: func(name string) (uint32, error) {
			g, err := user.LookupGroup(name)
			if err != nil {
				return 0, err
			}
			return parseID(g.Gid)
		},
	}
}

func parseID(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

// Parse parses a configuration; file is its name in messages. On an error there
// is no policy.
//
// Possible errors: a *FileError with everything that is wrong.
func Parse(file string, data []byte, lookup Lookup) (*Policy, error) {
	p := &parser{lookup: lookup, policy: &Policy{File: file, byName: make(map[string]*Publisher)}}
	if root := p.Document(data, APIVersion, Kind); root != nil && p.head(root) {
		p.configuration(root)
	}
	if err := p.Err(file); err != nil {
		return nil, err
	}
	return p.policy, nil
}

// parser makes a policy of a document.
type parser struct {
	decoder
	lookup Lookup
	policy *Policy
}

// head decides on what kind of file it is, before anything else is looked at.
func (p *parser) head(root *yaml.Node) bool {
	if !p.is("", root, yaml.MappingNode, "a mapping of fields") {
		return false
	}
	var got [2]string
	for i := 0; i+1 < len(root.Content); i += 2 {
		switch root.Content[i].Value {
		case "apiVersion":
			got[0] = root.Content[i+1].Value
		case "kind":
			got[1] = root.Content[i+1].Value
		}
	}
	if got == [2]string{APIVersion, Kind} {
		return true
	}
	p.Add(root.Line, "", "got apiVersion %q and kind %q: want apiVersion %s and kind %s", clip(got[0]), clip(got[1]), APIVersion, Kind)
	return false
}

func (p *parser) configuration(root *yaml.Node) {
	var defaults Limits
	lines := make(map[string]int)
	// Publishers are completed once the defaults are known, wherever these are.
	var complete []func()
	skip := func(string, *yaml.Node) {}
	p.mapping("", root, map[string]field{
		"apiVersion": skip,
		"kind":       skip,
		"socketGroup": func(path string, n *yaml.Node) {
			p.policy.SocketGroup = p.id(path, n, "group", p.lookup.Group)
		},
		"defaults": func(path string, n *yaml.Node) {
			p.mapping(path, n, map[string]field{"limits": func(path string, n *yaml.Node) {
				defaults = p.limits(path, n, lines)
			}})
		},
		"publishers": func(path string, n *yaml.Node) {
			p.list(path, n, func(path string, n *yaml.Node) {
				pub := p.publisher(path, n)
				pub.inherited = lines
				complete = append(complete, func() { p.complete(path, pub, defaults) })
			})
		},
	})
	for _, f := range complete {
		f()
	}
}

func (p *parser) publisher(path string, n *yaml.Node) *Publisher {
	pub := &Publisher{file: p.policy.File, lines: map[string]int{"": n.Line}}
	top := p.mapping(path, n, map[string]field{
		"name":       func(path string, n *yaml.Node) { p.name(path, n, pub) },
		"match":      func(path string, n *yaml.Node) { p.match(path, n, &pub.Match) },
		"allow":      func(path string, n *yaml.Node) { p.allow(path, n, pub) },
		"priorities": func(path string, n *yaml.Node) { pub.Priorities = p.rangeOf(path, n) },
		"admin":      func(path string, n *yaml.Node) { pub.Admin = p.truth(path, n) },
		"limits":     func(path string, n *yaml.Node) { pub.Limits = p.limits(path, n, pub.lines) },
	})
	if line, ok := top["priorities"]; ok {
		pub.lines["priorities"] = line
	}
	if top == nil {
		return pub
	}
	if top["name"] == 0 {
		p.Add(n.Line, path, "the publisher has no name: give it one")
	}
	if top["match"] == 0 {
		p.Add(n.Line, path, "the publisher has no match: say with uid, gid or cgroup who it is")
	}
	return pub
}

// complete gives a publisher the limits that it does not set itself, and
// enters it.
func (p *parser) complete(path string, pub *Publisher, defaults Limits) {
	l := &pub.Limits
	l.Fragments, l.Rules, l.Elements = cmp.Or(l.Fragments, defaults.Fragments), cmp.Or(l.Rules, defaults.Rules), cmp.Or(l.Elements, defaults.Elements)
	l.Bytes, l.Streams = cmp.Or(l.Bytes, defaults.Bytes), cmp.Or(l.Streams, defaults.Streams)
	// A burst goes with its rate.
	if l.UpdatesPerSecond == 0 {
		l.UpdatesPerSecond, l.Burst = defaults.UpdatesPerSecond, cmp.Or(l.Burst, defaults.Burst)
	}
	switch {
	case l.UpdatesPerSecond == 0 && l.Burst > 0 && pub.lines["limits.burst"] > 0:
		p.Add(pub.lines["limits.burst"], path+".limits.burst", "it does nothing without updatesPerSecond: set that too")
	case l.UpdatesPerSecond > 0 && l.Burst == 0:
		l.Burst = int(math.Ceil(l.UpdatesPerSecond))
	}
	if pub.Name == "" {
		return
	}
	if first := p.policy.byName[pub.Name]; first != nil {
		p.Add(pub.lines["name"], path+".name", "publisher %s is there twice, also in line %d: join them", pub.Name, first.lines["name"])
		return
	}
	p.policy.byName[pub.Name] = pub
	p.policy.Publishers = append(p.policy.Publishers, pub)
}

func (p *parser) name(path string, n *yaml.Node, pub *Publisher) {
	pub.lines["name"] = n.Line
	name, ok := p.text(path, n, "a name")
	if !ok {
		return
	}
	if !validName(name) {
		p.Add(n.Line, path, "got %q: want 1 to 63 of [a-z0-9._-], a letter or digit first", clip(name))
		return
	}
	pub.Name = name
}

// validName reports whether a publisher may have a name: the rule is that of
// admission.CheckIdentity.
func validName(name string) bool {
	if name == "" || len(name) > 63 || strings.IndexByte("._-", name[0]) >= 0 {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789._-", r)
	})
}

func (p *parser) match(path string, n *yaml.Node, m *Match) {
	glob := func(to *string) field {
		return func(path string, n *yaml.Node) {
			text, ok := p.text(path, n, "an absolute path or a glob of one")
			if !ok {
				return
			}
			if err := checkPath(text); err != nil {
				p.Add(n.Line, path, "%v", err)
				return
			}
			*to = text
		}
	}
	given := p.mapping(path, n, map[string]field{
		"uid":        func(path string, n *yaml.Node) { m.UID = p.id(path, n, "user", p.lookup.User) },
		"gid":        func(path string, n *yaml.Node) { m.GID = p.id(path, n, "group", p.lookup.Group) },
		"executable": glob(&m.Executable),
		"cgroup":     glob(&m.Cgroup),
	})
	if given != nil && given["uid"]+given["gid"]+given["cgroup"] == 0 {
		p.Add(n.Line, path, "nothing says whose process it is: give it a uid, gid or cgroup (every user can run an executable)")
	}
}

// id returns a user's or group's id; nil where it is wrong.
func (p *parser) id(path string, n *yaml.Node, what string, lookup func(string) (uint32, error)) *uint32 {
	want := fmt.Sprintf("the id or the name of a %s", what)
	if !p.is(path, n, yaml.ScalarNode, want) {
		return nil
	}
	if n.Tag == "!!int" {
		// The last one is the kernel's word for no id at all.
		v, ok := p.number(path, n, 0, math.MaxUint32-1)
		if !ok {
			return nil
		}
		id := uint32(v) //nolint:gosec // in range
		return &id
	}
	name, ok := p.text(path, n, want)
	if !ok {
		return nil
	}
	id, err := lookup(name)
	if err != nil {
		p.Add(n.Line, path, "%s %q is not known on this machine: make it, or give its id (%v)", what, clip(name), err)
		return nil
	}
	return &id
}

func (p *parser) allow(path string, n *yaml.Node, pub *Publisher) {
	a := &pub.Allow
	given := p.mapping(path, n, map[string]field{
		"tables": func(path string, n *yaml.Node) {
			a.Tables = []TablePattern{}
			p.list(path, n, func(path string, n *yaml.Node) { p.table(path, n, a) })
		},
		"families": func(path string, n *yaml.Node) {
			a.Families = []nft.Family{}
			p.list(path, n, func(path string, n *yaml.Node) {
				if f, ok := p.family(path, n); ok {
					a.Families = append(a.Families, f)
				}
			})
		},
		"hooks": func(path string, n *yaml.Node) {
			a.Hooks = []string{}
			p.list(path, n, func(path string, n *yaml.Node) { p.hook(path, n, a) })
		},
		"nat":             func(path string, n *yaml.Node) { a.NAT = p.truth(path, n) },
		"chainPriorities": func(path string, n *yaml.Node) { a.ChainPriorities = p.rangeOf(path, n) },
	})
	for name, line := range given {
		pub.lines["allow."+name] = line
	}
}

func (p *parser) table(path string, n *yaml.Node, a *Allow) {
	var t TablePattern
	given := p.mapping(path, n, map[string]field{
		"family": func(path string, n *yaml.Node) {
			if f, ok := p.family(path, n); ok {
				t.Family = &f
			}
		},
		"name": func(path string, n *yaml.Node) {
			name, ok := p.text(path, n, "a table's name or a glob of one")
			if !ok {
				return
			}
			if err := checkGlob(name); err != nil {
				p.Add(n.Line, path, "%v", err)
				return
			}
			t.Name = name
		},
	})
	if given != nil && given["name"] == 0 {
		p.Add(n.Line, path, `the table has no name: give it one, or "*" for each`)
	}
	a.Tables = append(a.Tables, t)
}

func (p *parser) family(path string, n *yaml.Node) (nft.Family, bool) {
	name, ok := p.text(path, n, "a family")
	if !ok {
		return 0, false
	}
	f, err := nft.ParseFamily(name)
	if err != nil {
		p.Add(n.Line, path, "%v", err)
		return 0, false
	}
	return f, true
}

// hooks are those of nft, over all families.
var hooks = []string{"prerouting", "input", "forward", "output", "postrouting", "ingress", "egress"}

func (p *parser) hook(path string, n *yaml.Node, a *Allow) {
	name, ok := p.text(path, n, "a hook")
	if !ok {
		return
	}
	if !slices.Contains(hooks, name) {
		p.Add(n.Line, path, "unknown hook %q: want %s", clip(name), strings.Join(hooks, ", "))
		return
	}
	a.Hooks = append(a.Hooks, name)
}

func (p *parser) rangeOf(path string, n *yaml.Node) Range {
	var r Range
	bound := func(to **int32) field {
		return func(path string, n *yaml.Node) {
			if v, ok := p.number(path, n, math.MinInt32, math.MaxInt32); ok {
				b := int32(v) //nolint:gosec // in range
				*to = &b
			}
		}
	}
	given := p.mapping(path, n, map[string]field{"min": bound(&r.Min), "max": bound(&r.Max)})
	switch {
	case given != nil && len(given) == 0:
		p.Add(n.Line, path, "neither min nor max is given: give one of them, or leave the field out")
	case r.Min != nil && r.Max != nil && *r.Min > *r.Max:
		p.Add(n.Line, path, "min %d is greater than max %d: nothing would be allowed", *r.Min, *r.Max)
	}
	return r
}

// limits records the lines of the limits that are set, as "limits.x".
func (p *parser) limits(path string, n *yaml.Node, lines map[string]int) Limits {
	var l Limits
	count := func(to *int) field {
		return func(path string, n *yaml.Node) {
			if v, ok := p.number(path, n, 1, math.MaxInt32); ok {
				*to = int(v)
			}
		}
	}
	given := p.mapping(path, n, map[string]field{
		"fragments": count(&l.Fragments), "rules": count(&l.Rules), "elements": count(&l.Elements),
		"burst": count(&l.Burst), "streams": count(&l.Streams),
		"bytes":            func(path string, n *yaml.Node) { l.Bytes = p.size(path, n) },
		"updatesPerSecond": func(path string, n *yaml.Node) { l.UpdatesPerSecond = p.rate(path, n) },
	})
	for name, line := range given {
		lines["limits."+name] = line
	}
	return l
}

// size returns a number of bytes, or 0 if it is wrong.
func (p *parser) size(path string, n *yaml.Node) int {
	v, _ := scalar(&p.decoder, path, n, "a number of bytes, at least 1, such as 500000, 64Ki, 16Mi or 1Gi", func() (int, bool) {
		text, shift := n.Value, 0
		for i, suffix := range []string{"Ki", "Mi", "Gi"} {
			if digits, ok := strings.CutSuffix(text, suffix); ok {
				text, shift = digits, 10*(i+1)
				break
			}
		}
		v, err := decimal(text)
		if err != nil || v < 1 || v > math.MaxInt64>>shift || v<<shift > math.MaxInt {
			return 0, false
		}
		return int(v << shift), true
	})
	return v
}

// maxRate is more than any publisher reaches.
const maxRate = 1e6

// rate returns a number of updates a second, or 0 if it is wrong.
func (p *parser) rate(path string, n *yaml.Node) float64 {
	want := fmt.Sprintf("a number greater than 0, such as 0.5 or 100, and at most %.0f", maxRate)
	v, _ := scalar(&p.decoder, path, n, want, func() (float64, bool) {
		v, err := strconv.ParseFloat(n.Value, 64)
		return v, (n.Tag == "!!int" || n.Tag == "!!float") && err == nil && v > 0 && v <= maxRate
	})
	return v
}
