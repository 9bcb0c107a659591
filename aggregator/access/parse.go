package access

import (
	"cmp"
	"fmt"
	"math"
	"os/user"
	"slices"
	"strconv"
	"strings"

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
//
// Possible errors: a *FileError with all problems.
func Parse(file string, data []byte, lookup Lookup) (*Policy, error) {
	p := &Policy{File: file, byName: make(map[string]*Publisher)}
	d := &Decoder{texts: texts(lookup), names: fieldNames()}
	if root := d.Document(data, APIVersion, Kind); root != nil {
		var doc document
		d.Decode(root, &doc)
		p.SocketGroup = doc.SocketGroup
		for i := range doc.Publishers {
			pub := &doc.Publishers[i]
			pub.source = source{file, fmt.Sprintf("publishers[%d]", i), d.Lines}
			p.complete(d, pub, doc.Defaults.Limits)
		}
		p.acceptAll(d)
	}
	if err := d.Err(file); err != nil {
		return nil, err
	}
	return p, nil
}

type document struct {
	APIVersion  string  `json:"apiVersion"`
	Kind        string  `json:"kind"`
	SocketGroup *uint32 `json:"socketGroup" text:"group"`
	Defaults    struct {
		Limits Limits `json:"limits"`
	} `json:"defaults"`
	Publishers []Publisher `json:"publishers"`
}

// texts returns the parsers of fields by the names in the fields' tags.
func texts(lookup Lookup) map[string]func(string) (any, error) {
	return map[string]func(string) (any, error){
		"name":   checked(checkName),
		"path":   checked(checkPath),
		"glob":   checked(checkGlob),
		"hook":   oneOf("hook", "prerouting", "input", "forward", "output", "postrouting", "ingress", "egress"),
		"flag":   oneOf("flag", flagDormant),
		"family": func(s string) (any, error) { return nft.ParseFamily(s) },
		"user":   id("user", lookup.User),
		"group":  id("group", lookup.Group),
		"limit":  parseLimit,
		"rate":   parseRate,
		"log":    parseLogRate,
	}
}

// fieldNames returns the valid names in Allow.Granted and Limits.Most.
func fieldNames() map[string][]string {
	granted := []string{masqueradeMark}
	for _, c := range nft.Classes() {
		if c != nft.ClassFilter && c != nft.ClassLog && c != nft.ClassMarks {
			granted = append(granted, c.String())
		}
	}
	var most []string
	for _, limit := range Counted() {
		most = append(most, string(limit))
	}
	return map[string][]string{"Granted": granted, "Most": most}
}

func checked(check func(string) error) func(string) (any, error) {
	return func(s string) (any, error) { return s, check(s) }
}

func oneOf(what string, words ...string) func(string) (any, error) {
	return checked(func(s string) error {
		if !slices.Contains(words, s) {
			return fmt.Errorf("unknown %s %q: want %s", what, clip(s), strings.Join(words, ", "))
		}
		return nil
	})
}

func id(what string, lookup func(string) (uint32, error)) func(string) (any, error) {
	return func(s string) (any, error) {
		if strings.Trim(s, "-0123456789") != "" {
			id, err := lookup(s)
			if err != nil {
				return nil, fmt.Errorf("%s %q is not known on this machine: make it, or give its id (%w)", what, clip(s), err)
			}
			return id, nil
		}
		n, err := strconv.ParseUint(s, 10, 32)
		// The kernel uses the greatest number for no id.
		if err != nil || n == math.MaxUint32 || zeroFirst(s) {
			return nil, fmt.Errorf("got %q: want a whole number from 0 to %d", clip(s), math.MaxUint32-1)
		}
		return n, nil
	}
}

// maxLimit can be added to without overflow.
const maxLimit = 1 << 50

func parseLimit(s string) (any, error) {
	text, shift := s, 0
	for i, suffix := range []string{"Ki", "Mi", "Gi"} {
		if digits, ok := strings.CutSuffix(s, suffix); ok {
			text, shift = digits, 10*(i+1)
		}
	}
	v, err := strconv.ParseUint(text, 10, 63)
	if err != nil || zeroFirst(text) || v < 1 || v > maxLimit>>shift {
		return nil, fmt.Errorf("got %q: want a whole number from 1 to %dGi, such as 500000, 64Ki or 16Mi", clip(s), maxLimit>>30)
	}
	return v << shift, nil
}

const maxRate = 1e6

func parseRate(s string) (any, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v > 0 && v <= maxRate) {
		return nil, fmt.Errorf("got %q: want a number greater than 0, such as 0.5 or 100, and at most %.0f", clip(s), maxRate)
	}
	return v, nil
}

// more than a kernel log can hold: a greater number is a mistake for unlimited
const maxLogRate = 1_000_000

func parseLogRate(s string) (any, error) {
	if s == "unlimited" {
		return UnlimitedLog, nil
	}
	v, err := strconv.ParseUint(s, 10, 32)
	if err != nil || v > maxLogRate || zeroFirst(s) {
		return nil, fmt.Errorf("got %q: want a number of packets a second from 0 to %d, or unlimited", clip(s), maxLogRate)
	}
	return v, nil
}

func (p *Policy) complete(d *Decoder, pub *Publisher, defaults Limits) {
	own := &pub.Limits
	if own.Most == nil {
		own.Most = make(map[Limit]int)
	}
	for limit, most := range defaults.Most {
		own.Most[limit] = cmp.Or(own.Most[limit], most)
	}
	pub.setDefaults()
	// A burst goes with its rate.
	if own.UpdatesPerSecond == 0 {
		own.UpdatesPerSecond, own.Burst = defaults.UpdatesPerSecond, cmp.Or(own.Burst, defaults.Burst)
	}
	switch line := pub.line("limits.burst"); {
	case own.UpdatesPerSecond == 0 && own.Burst > 0 && line > 0:
		d.Add(line, pub.path+".limits.burst", "it does nothing without updatesPerSecond: set that too")
	case own.UpdatesPerSecond > 0 && own.Burst == 0:
		own.Burst = int(math.Ceil(own.UpdatesPerSecond))
	}
	if pub.Name == "" {
		return
	}
	if first := p.byName[pub.Name]; first != nil {
		d.Add(pub.line("name"), pub.path+".name", "publisher %s is there twice, also in line %d: join them", pub.Name, first.line("name"))
		return
	}
	p.byName[pub.Name] = pub
	p.Publishers = append(p.Publishers, pub)
}
