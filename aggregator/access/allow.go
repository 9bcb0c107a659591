package access

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weft-proxy/weft/nft"
)

// allow reads the field allow of a publisher.
func (p *parser) allow(path string, n *yaml.Node, pub *Publisher) {
	a := &pub.Allow
	fields := map[string]field{
		"tables":          listOf(p, &a.Tables, p.table),
		"families":        listOf(p, &a.Families, text(p, "a family", nft.ParseFamily)),
		"hooks":           listOf(p, &a.Hooks, text(p, "a hook", checked(checkHook))),
		"chainPriorities": p.bounds(&a.ChainPriorities),
		"shared":          listOf(p, &a.Shared, p.shared),
		"devices":         listOf(p, &a.Devices, text(p, "the name of a device or a glob of one", checked(checkGlob))),
	}
	masquerade := false
	fields["masqueradeMark"] = into(&masquerade, p.truth)
	// grant allows a class if its field says so.
	grant := func(c nft.Class, read reader[bool]) {
		fields[c.String()] = func(path string, n *yaml.Node) {
			if yes, ok := read(path, n); ok && yes {
				a.Classes = a.Classes.With(c)
			}
		}
	}
	for _, c := range nft.Classes() {
		switch c {
		case nft.ClassFilter:
		case nft.ClassLog:
			grant(c, func(path string, n *yaml.Node) (ok, valid bool) {
				a.LogRate, valid = p.logRate(path, n)
				return a.LogRate != 0, valid
			})
		case nft.ClassMarks:
			grant(c, func(path string, n *yaml.Node) (ok, valid bool) {
				a.Marks, valid = p.mask(path, n)
				return a.Marks != 0, valid
			})
		default:
			grant(c, p.truth)
		}
	}
	for name, line := range p.mapping(path, n, fields) {
		pub.lines["allow."+name] = line
	}
	if a.Marks &^= MasqueradeMark; masquerade {
		a.Marks |= MasqueradeMark
		a.Classes = a.Classes.With(nft.ClassMarks)
	}
}

// maxLogRate is more than a kernel log can hold: a greater number is a mistake for unlimited.
const maxLogRate = 1_000_000

// logRate reads a number of packets a second, or "unlimited".
func (p *parser) logRate(path string, n *yaml.Node) (int, bool) {
	want := fmt.Sprintf("a number of packets a second from 0 to %d, or unlimited", maxLogRate)
	return scalar(p, path, n, want, func() (int, bool) {
		if n.Value == "unlimited" {
			return UnlimitedLog, true
		}
		v, err := decimal(n.Value)
		return int(v), n.Tag == "!!int" && err == nil && v >= 0 && v <= maxLogRate
	})
}

// mask reads 32 bits as a decimal or hexadecimal number.
func (p *parser) mask(path string, n *yaml.Node) (uint32, bool) {
	return scalar(p, path, n, "a mask of 32 bits such as 0xff00", func() (uint32, bool) {
		digits, hex := strings.CutPrefix(n.Value, "0x")
		base := 10
		if hex {
			base = 16
		} else if _, err := decimal(digits); err != nil {
			return 0, false
		}
		v, err := strconv.ParseUint(digits, base, 32)
		return uint32(v), n.Tag == "!!int" && err == nil
	})
}
