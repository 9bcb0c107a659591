package access

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os/user"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weft-proxy/weft/nft"
)

// The required values of the fields apiVersion and kind.
const (
	APIVersion = "weft.dev/v1alpha1"
	Kind       = "Configuration"
)

// Lookup finds the ids of users and groups by name.
type Lookup struct {
	User, Group func(name string) (uint32, error)
}

// System returns a Lookup in the system's databases.
func System() Lookup {
	return Lookup{
		User:  find(user.Lookup, func(u *user.User) string { return u.Uid }),
		Group: find(user.LookupGroup, func(g *user.Group) string { return g.Gid }),
	}
}

// find returns a function that looks up a name and parses the id.
func find[T any](lookup func(string) (T, error), id func(T) string) func(string) (uint32, error) {
	return func(name string) (uint32, error) {
		v, err := lookup(name)
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseUint(id(v), 10, 32)
		return uint32(n), err
	}
}

// Parse parses a configuration; file is its name in messages. The lookup must have both functions.
// On an error the policy is nil.
//
// Possible errors: a *FileError with all problems.
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

// parser makes a policy from a document.
type parser struct {
	Problems
	lookup Lookup
	policy *Policy
}

// head checks the kind of file before everything else.
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
	defaults := Limits{Most: make(map[Limit]int)}
	lines := make(map[string]int)
	var publishers []*Publisher
	skip := func(string, *yaml.Node) {}
	p.mapping("", root, map[string]field{
		"apiVersion":  skip,
		"kind":        skip,
		"socketGroup": pointer(&p.policy.SocketGroup, p.id("group", p.lookup.Group)),
		"defaults": func(path string, n *yaml.Node) {
			p.mapping(path, n, map[string]field{"limits": p.limits(&defaults, lines)})
		},
		"publishers": listOf(p, &publishers, p.publisher),
	})
	for i, pub := range publishers {
		pub.inherited = lines
		p.complete(fmt.Sprintf("publishers[%d]", i), pub, defaults)
	}
	p.acceptAll()
}

func (p *parser) publisher(path string, n *yaml.Node) (*Publisher, bool) {
	pub := &Publisher{file: p.policy.File, lines: map[string]int{"": n.Line}, Limits: Limits{Most: make(map[Limit]int)}}
	top := p.mapping(path, n, map[string]field{
		"name":       into(&pub.Name, text(p, "a name", checked(checkName))),
		"match":      func(path string, n *yaml.Node) { p.match(path, n, &pub.Match) },
		"allow":      func(path string, n *yaml.Node) { p.allow(path, n, pub) },
		"priorities": p.bounds(&pub.Priorities),
		"read":       into(&pub.Read, p.truth),
		"flows":      into(&pub.Flows, p.truth),
		"admin":      into(&pub.Admin, p.truth),
		"system":     into(&pub.System, p.truth),
		"accept":     func(path string, n *yaml.Node) { p.accept(path, n, pub) },
		"limits":     p.limits(&pub.Limits, pub.lines),
	})
	if top == nil {
		return pub, true
	}
	maps.Copy(pub.lines, top)
	if top["name"] == 0 {
		p.Add(n.Line, path, "the publisher has no name: give it one")
	}
	if top["match"] == 0 {
		p.Add(n.Line, path, "the publisher has no match: say with uid, gid or cgroup who it is")
	}
	return pub, true
}

// complete adds the default limits to a publisher and registers it.
func (p *parser) complete(path string, pub *Publisher, defaults Limits) {
	own := &pub.Limits
	for limit, most := range defaults.Most {
		own.Most[limit] = cmp.Or(own.Most[limit], most)
	}
	pub.setDefaults()
	// A burst goes with its rate.
	if own.UpdatesPerSecond == 0 {
		own.UpdatesPerSecond, own.Burst = defaults.UpdatesPerSecond, cmp.Or(own.Burst, defaults.Burst)
	}
	switch {
	case own.UpdatesPerSecond == 0 && own.Burst > 0 && pub.lines["limits.burst"] > 0:
		p.Add(pub.lines["limits.burst"], path+".limits.burst", "it does nothing without updatesPerSecond: set that too")
	case own.UpdatesPerSecond > 0 && own.Burst == 0:
		own.Burst = int(math.Ceil(own.UpdatesPerSecond))
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

// publisherName matches valid names of publishers, as admission.CheckIdentity does.
var publisherName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

func checkName(name string) error {
	if !publisherName.MatchString(name) {
		return fmt.Errorf("got %q: want 1 to 63 of [a-z0-9._-], a letter or digit first", clip(name))
	}
	return nil
}

func (p *parser) match(path string, n *yaml.Node, m *Match) {
	glob := text(p, "an absolute path or a glob of one", checked(checkPath))
	given := p.mapping(path, n, map[string]field{
		"uid":        pointer(&m.UID, p.id("user", p.lookup.User)),
		"gid":        pointer(&m.GID, p.id("group", p.lookup.Group)),
		"executable": into(&m.Executable, glob),
		"cgroup":     into(&m.Cgroup, glob),
	})
	if given != nil && given["uid"]+given["gid"]+given["cgroup"] == 0 {
		p.Add(n.Line, path, "nothing says whose process it is: give it a uid, gid or cgroup (every user can run an executable)")
	}
}

// id reads the id of a user or group, or looks up its name.
func (p *parser) id(what string, lookup func(string) (uint32, error)) reader[uint32] {
	want := fmt.Sprintf("the id or the name of a %s", what)
	name := text(p, want, func(name string) (uint32, error) {
		id, err := lookup(name)
		if err != nil {
			err = fmt.Errorf("%s %q is not known on this machine: make it, or give its id (%w)", what, clip(name), err)
		}
		return id, err
	})
	return func(path string, n *yaml.Node) (uint32, bool) {
		if n.Tag == "!!int" {
			// The kernel uses the last one for no id.
			return number[uint32](p, 0, math.MaxUint32-1)(path, n)
		}
		return name(path, n)
	}
}

func (p *parser) table(path string, n *yaml.Node) (TablePattern, bool) {
	var t TablePattern
	given := p.mapping(path, n, map[string]field{
		"family": pointer(&t.Family, text(p, "a family", nft.ParseFamily)),
		"name":   into(&t.Name, text(p, "a table's name or a glob of one", checked(checkGlob))),
	})
	if given != nil && given["name"] == 0 {
		p.Add(n.Line, path, `the table has no name: give it one, or "*" for each`)
	}
	return t, true
}

// hooks are nft's hooks of all families.
var hooks = []string{"prerouting", "input", "forward", "output", "postrouting", "ingress", "egress"}

func checkHook(name string) error {
	if !slices.Contains(hooks, name) {
		return fmt.Errorf("unknown hook %q: want %s", clip(name), strings.Join(hooks, ", "))
	}
	return nil
}

// bounds reads a range of numbers.
func (p *parser) bounds(r *Range) field {
	bound := number[int32](p, math.MinInt32, math.MaxInt32)
	return func(path string, n *yaml.Node) {
		given := p.mapping(path, n, map[string]field{"min": pointer(&r.Min, bound), "max": pointer(&r.Max, bound)})
		switch {
		case given != nil && len(given) == 0:
			p.Add(n.Line, path, "neither min nor max is given: give one of them, or leave the field out")
		case r.Min != nil && r.Max != nil && *r.Min > *r.Max:
			p.Add(n.Line, path, "min %d is greater than max %d: nothing would be allowed", *r.Min, *r.Max)
		}
	}
}

// limits reads limits and records the line of each as "limits.x".
func (p *parser) limits(l *Limits, lines map[string]int) field {
	count := number[int](p, 1, math.MaxInt32)
	return func(path string, n *yaml.Node) {
		fields := map[string]field{"burst": into(&l.Burst, count), "updatesPerSecond": into(&l.UpdatesPerSecond, p.rate)}
		for _, limit := range Counted() {
			read := count
			if limit == LimitBytes || limit == LimitMemory {
				read = p.size
			}
			fields[string(limit)] = func(path string, n *yaml.Node) {
				if v, ok := read(path, n); ok {
					l.Most[limit] = v
				}
			}
		}
		for name, line := range p.mapping(path, n, fields) {
			lines["limits."+name] = line
		}
	}
}

// size reads a number of bytes.
func (p *parser) size(path string, n *yaml.Node) (int, bool) {
	return scalar(p, path, n, "a number of bytes, at least 1, such as 500000, 64Ki, 16Mi or 1Gi", func() (int, bool) {
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
}

// maxRate is more than any publisher reaches.
const maxRate = 1e6

// rate reads a number of updates a second.
func (p *parser) rate(path string, n *yaml.Node) (float64, bool) {
	want := fmt.Sprintf("a number greater than 0, such as 0.5 or 100, and at most %.0f", maxRate)
	return scalar(p, path, n, want, func() (float64, bool) {
		v, err := strconv.ParseFloat(n.Value, 64)
		return v, (n.Tag == "!!int" || n.Tag == "!!float") && err == nil && v > 0 && v <= maxRate
	})
}
