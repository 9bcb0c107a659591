package object

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/userdata"
)

// linux/netfilter.h, linux/netfilter_arp.h
const (
	hookInetIngress = 5
	hookARPInput    = 0
	hookARPOutput   = 1
)

type hook struct {
	name   string
	num    uint32
	device bool
	types  []string
}

// hooksOf returns nil for a family without tables.
func hooksOf(family nft.Family) []hook {
	filter, nat, all := []string{"filter"}, []string{"filter", "nat"}, []string{"filter", "nat", "route"}
	if family == nft.FamilyBridge {
		nat, all = filter, filter
	}
	switch family {
	case nft.FamilyIP, nft.FamilyIP6, nft.FamilyInet, nft.FamilyBridge:
		hooks := []hook{
			{name: "prerouting", num: unix.NF_INET_PRE_ROUTING, types: nat},
			{name: "input", num: unix.NF_INET_LOCAL_IN, types: nat},
			{name: "forward", num: unix.NF_INET_FORWARD, types: filter},
			{name: "output", num: unix.NF_INET_LOCAL_OUT, types: all},
			{name: "postrouting", num: unix.NF_INET_POST_ROUTING, types: nat},
		}
		if family == nft.FamilyInet {
			hooks = append(hooks, hook{name: "ingress", num: hookInetIngress, device: true, types: filter})
		}
		return hooks
	case nft.FamilyARP:
		return []hook{
			{name: "input", num: hookARPInput, types: filter},
			{name: "output", num: hookARPOutput, types: filter},
		}
	case nft.FamilyNetdev:
		return []hook{
			{name: "ingress", num: unix.NF_NETDEV_INGRESS, device: true, types: filter},
			{name: "egress", num: unix.NF_NETDEV_EGRESS, device: true, types: filter},
		}
	default:
		return nil
	}
}

// nil hooks mean all hooks of the family.
type priority struct {
	name  string
	value int32
	hooks []string
}

// prioritiesOf returns names of enum nf_ip_hook_priorities or nf_br_hook_priorities. nft 1.0.6 has
// dstnat only at prerouting and srcnat only at postrouting; 1.0.9 also at output and input.
func prioritiesOf(family nft.Family) []priority {
	pre, post := []string{"prerouting"}, []string{"postrouting"}
	switch family {
	case nft.FamilyBridge:
		return []priority{
			{"dstnat", -300, pre}, {"filter", -200, nil}, {"out", 100, []string{"output"}}, {"srcnat", 300, post},
		}
	case nft.FamilyARP, nft.FamilyNetdev:
		return []priority{{"filter", 0, nil}}
	default:
		return []priority{
			{"raw", -300, nil}, {"mangle", -150, nil}, {"dstnat", -100, []string{"prerouting", "output"}},
			{"filter", 0, nil}, {"security", 50, nil}, {"srcnat", 100, []string{"postrouting", "input"}},
		}
	}
}

// Up to minNATPriority connection tracking has not run (NF_IP_PRI_CONNTRACK).
const minNATPriority = -200

// CompileChain compiles a chain without its rules. Its error is not a *syntax.Error.
func CompileChain(family nft.Family, c *nft.Chain) (*Chain, error) {
	if err := datatype.CheckName(c.Name); err != nil {
		return nil, fmt.Errorf("compile chain: %w", err)
	}
	out := &Chain{Name: c.Name, Comment: c.Comment}
	fail := func(err error) (*Chain, error) {
		return nil, fmt.Errorf("compile chain %s: %w", c.Name, err)
	}
	if err := userdata.CheckComment(c.Comment); err != nil {
		return fail(err)
	}
	if hooksOf(family) == nil {
		return fail(fmt.Errorf("no chains in %s", family))
	}
	if !c.Base() {
		switch {
		case c.Policy != "":
			return fail(fmt.Errorf("policy %s without type, hook and priority: only base chains have a policy", c.Policy))
		case c.Device != "":
			return fail(fmt.Errorf("device %q without type, hook and priority: only base chains have a device", c.Device))
		case len(c.Devices) > 0:
			return fail(fmt.Errorf("devices %s without type, hook and priority: only base chains have devices", strings.Join(c.Devices, ", ")))
		case len(c.Flags) > 0:
			return fail(fmt.Errorf("flags %s without type, hook and priority: only base chains have flags", strings.Join(c.Flags, ", ")))
		}
		return out, nil
	}
	base, err := compileBase(family, c)
	if err != nil {
		return fail(err)
	}
	out.Base = base
	return out, nil
}

func compileBase(family nft.Family, c *nft.Chain) (*Base, error) {
	if c.Type == "" || c.Hook == "" || c.Priority == "" {
		return nil, fmt.Errorf("a base chain has type, hook and priority: missing %s", missing(c))
	}
	hooks := hooksOf(family)
	i := slices.IndexFunc(hooks, func(h hook) bool { return h.name == c.Hook })
	if i < 0 {
		return nil, fmt.Errorf("unknown hook %q in family %s: want %s", c.Hook, family, joinHooks(hooks))
	}
	h := hooks[i]
	if !slices.Contains([]string{"filter", "nat", "route"}, c.Type) {
		return nil, fmt.Errorf("unknown chain type %q: want filter, nat or route", c.Type)
	}
	if !slices.Contains(h.types, c.Type) {
		return nil, fmt.Errorf("chain type %s is not possible at hook %s of family %s: want %s", c.Type, c.Hook, family, strings.Join(h.types, " or "))
	}
	prio, err := parsePriority(family, c.Hook, c.Priority)
	if err != nil {
		return nil, err
	}
	if c.Type == "nat" && prio <= minNATPriority {
		return nil, fmt.Errorf("priority %d of a nat chain: want more than %d, after connection tracking", prio, minNATPriority)
	}
	base := &Base{Type: c.Type, Hook: h.num, Priority: prio}
	if base.Offload, err = offloadFlag(c.Flags); err != nil {
		return nil, err
	}
	switch c.Policy {
	case "", "accept":
	case "drop":
		base.Drop = true
	default:
		return nil, fmt.Errorf("unknown policy %q: want accept or drop", c.Policy)
	}
	return base, base.setDevices(h, c)
}

func missing(c *nft.Chain) string {
	var words []string
	for _, f := range []struct{ name, value string }{{"type", c.Type}, {"hook", c.Hook}, {"priority", c.Priority}} {
		if f.value == "" {
			words = append(words, f.name)
		}
	}
	return strings.Join(words, ", ")
}

func joinHooks(hooks []hook) string {
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = h.name
	}
	return strings.Join(names, ", ")
}

func parsePriority(family nft.Family, hook, text string) (int32, error) {
	if v, err := strconv.ParseInt(text, 10, 32); err == nil {
		return int32(v), nil
	}
	name, offset := strings.TrimSpace(text), int64(0)
	if i := strings.IndexAny(name, "+-"); i >= 0 {
		sign, digits := name[i], strings.TrimSpace(name[i+1:])
		v, err := strconv.ParseInt(digits, 10, 33)
		if err != nil || digits == "" || digits[0] == '+' || digits[0] == '-' {
			return 0, fmt.Errorf("malformed priority %q: want a number, or a name with + or - and a number such as \"dstnat - 10\"", text)
		}
		if offset = v; sign == '-' {
			offset = -v
		}
		name = strings.TrimSpace(name[:i])
	}
	priorities := prioritiesOf(family)
	var names []string
	for _, p := range priorities {
		if p.hooks != nil && !slices.Contains(p.hooks, hook) {
			if p.name == name {
				return 0, fmt.Errorf("priority %s is not possible at hook %s of family %s: want hook %s", name, hook, family, strings.Join(p.hooks, " or "))
			}
			continue
		}
		if p.name == name {
			sum := int64(p.value) + offset
			if sum < math.MinInt32 || sum > math.MaxInt32 {
				return 0, fmt.Errorf("priority %q is out of range", text)
			}
			return int32(sum), nil
		}
		names = append(names, p.name)
	}
	return 0, fmt.Errorf("unknown priority %q at hook %s of family %s: want a number, or %s with an optional + or - and a number", text, hook, family, strings.Join(names, ", "))
}

// Declaration is the inverse of CompileChain. A base chain always has a policy, and its priority is
// a number.
func (c *Chain) Declaration(family nft.Family) nft.Chain {
	d := nft.Chain{Name: c.Name, Comment: c.Comment}
	if c.Base == nil {
		return d
	}
	d.Type, d.Priority, d.Policy, d.Device = c.Base.Type, strconv.Itoa(int(c.Base.Priority)), "accept", c.Base.Device
	if c.Base.Drop {
		d.Policy = "drop"
	}
	d.Devices = c.Base.Devices.List()
	if c.Base.Offload {
		d.Flags = []string{flagOffload}
	}
	d.Hook = fmt.Sprintf("hook%d", c.Base.Hook)
	for _, h := range hooksOf(family) {
		if h.num == c.Base.Hook {
			d.Hook = h.name
		}
	}
	return d
}

// Chain is a compiled chain declaration.
type Chain struct {
	Name string
	// nil for a regular chain
	Base    *Base
	Comment string
}

// Base has the properties of a base chain. It is comparable.
type Base struct {
	// filter, nat or route
	Type string
	// number in the table's family
	Hook     uint32
	Priority int32
	Drop     bool
	Device   string
	// Devices replaces Device if there are several.
	Devices Devices
	Offload bool
}
