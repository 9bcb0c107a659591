package compile

import (
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Interface indices belong to the machine and change when the interface comes back; nft looks them
// up once. weft compares the name of iif, oif and fib's oif instead, so the rule matches while the
// interface exists. lo is always 1, and stays a number unless another name is beside it.

// constants holds the names, if any.
func byName(key, constants syntax.Expr) syntax.Expr {
	concat, ok := key.(*syntax.Concat)
	if !ok {
		return partByName(key, constantsOf(constants, -1))
	}
	parts := make([]syntax.Expr, len(concat.Parts))
	for i, part := range concat.Parts {
		parts[i] = partByName(part, constantsOf(constants, i))
	}
	return &syntax.Concat{Pos: concat.Pos, Parts: parts}
}

func partByName(key syntax.Expr, constants []*syntax.Const) syntax.Expr {
	var name syntax.Expr
	switch x := key.(type) {
	case *syntax.Meta:
		if x.Key != "iif" && x.Key != "oif" {
			return key
		}
		name = &syntax.Meta{Pos: x.Pos, Key: x.Key + "name", KeyPos: x.KeyPos}
	case *syntax.FIB:
		if x.Result != "oif" {
			return key
		}
		name = &syntax.FIB{Pos: x.Pos, Inputs: x.Inputs, Result: "oifname"}
	default:
		return key
	}
	var named, index *syntax.Const
	for _, c := range constants {
		switch _, err := strconv.ParseUint(c.Text, 0, 32); {
		case err == nil:
			index = c
		case c.Text == "lo" || !c.Quoted && datatype.IsKeyword(c.Text, false) || !c.Quoted && (c.Text == "exists" || c.Text == "missing"):
		case strings.HasSuffix(c.Text, "*"):
			fail(c.Pos, "%q are several interfaces, and %s has one: write %s %q", c.Text, syntax.PrintExpr(key), syntax.PrintExpr(name), c.Text)
		default:
			named = c
		}
	}
	if named == nil {
		return key
	}
	if index != nil {
		fail(index.Pos, "the index %s is beside the name %s: write %s and names alone, or indices alone", index.Text, named.Text, syntax.PrintExpr(name))
	}
	return name
}

// constantsOf returns the constants of part i of a concatenation, or of the whole key if i is -1.
func constantsOf(x syntax.Expr, i int) (all []*syntax.Const) {
	switch x := x.(type) {
	case *syntax.Const:
		if i < 0 {
			all = append(all, x)
		}
	case *syntax.Concat:
		if 0 <= i && i < len(x.Parts) {
			return constantsOf(x.Parts[i], -1)
		}
	case *syntax.Set:
		for _, e := range x.Elems {
			all = append(all, constantsOf(e.Key, i)...)
		}
	}
	return all
}
