package set

import (
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
)

// Declaration returns the declaration in nft's words, without elements and typeof.
func (s *Set) Declaration() nft.Set {
	d := nft.Set{
		Name: s.Name, Type: strings.Join(s.Key.Names, " . "), Timeout: s.Timeout, GCInterval: s.GCInterval,
		Size: s.Size, AutoMerge: s.AutoMerge, Comment: s.Comment,
		Stateful: slices.Clone(s.Stateful),
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
	d.Flags = expr.Words(s.Flags, flagWords)
	if s.Memory {
		d.Policy = "memory"
	}
	return d
}
