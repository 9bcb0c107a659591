package compile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// Declaration returns the chain's declaration in nft's words, as CompileChain
// takes it. The priority is a number, however it was written.
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

// Declaration returns the declaration of the set or map in nft's words, without
// elements. It has the names of types, also where the set was declared with
// typeof: a declaration that comes from a dump knows no more.
func (s *Set) Declaration() nft.Set {
	d := nft.Set{
		Name: s.Name, Type: strings.Join(s.Key.Names, " . "), Timeout: s.Timeout, GCInterval: s.GCInterval,
		Size: s.Size, AutoMerge: s.AutoMerge, Comment: s.Comment,
	}
	switch {
	case s.Verdict:
		d.Type += " : verdict"
	case s.Object != "":
		d.Type += " : " + string(s.Object)
	case s.Map && s.DataInterval:
		d.Type += " : interval " + strings.Join(s.Data.Names, " . ")
	case s.Map:
		d.Type += " : " + strings.Join(s.Data.Names, " . ")
	}
	for _, f := range []struct {
		bit  uint32
		name string
	}{{SetConstant, "constant"}, {SetInterval, "interval"}, {SetTimeout, "timeout"}, {SetEval, "dynamic"}} {
		if s.Flags&f.bit != 0 {
			d.Flags = append(d.Flags, f.name)
		}
	}
	if s.Memory {
		d.Policy = "memory"
	}
	return d
}
