package object

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Ref names an object of a table.
type Ref struct {
	Kind nft.ObjectKind
	Name string
}

// String returns nft's words, such as "counter web".
func (r Ref) String() string { return string(r.Kind) + " " + r.Name }

// Type returns the kind's Number.
func (r Ref) Type() uint32 { return Number(r.Kind) }

// Object is a compiled object.
type Object struct {
	Kind    nft.ObjectKind
	Name    string
	Comment string
	// Text is as in [nft.Object], with a default l3proto and the greatest unit for a whole number.
	Text string
	// NFT_OBJECT_*
	Type uint32
	Data []byte
}

// Compile compiles an object. An error in the text wraps a *syntax.Error with a position in o.Text.
func Compile(family nft.Family, o *nft.Object) (*Object, error) {
	out, err := compileObject(family, o)
	if err != nil {
		return nil, fmt.Errorf("compile %s %s: %w", o.Kind, o.Name, err)
	}
	return out, nil
}

func compileObject(family nft.Family, o *nft.Object) (*Object, error) {
	k := kindOf(o.Kind)
	if k == nil {
		return nil, fmt.Errorf("unknown kind of object %q: want %s", o.Kind, kindNames())
	}
	if err := datatype.CheckName(o.Name); err != nil {
		return nil, err
	}
	if err := userdata.CheckComment(o.Comment); err != nil {
		return nil, err
	}
	body, err := syntax.ParseObject(o.Kind, o.Text)
	if err != nil {
		return nil, err
	}
	data, err := encode(family, body)
	if err != nil {
		var e *syntax.Error
		if errors.As(err, &e) && e.Line == "" {
			e.Line = syntax.SourceLine(o.Text, e.Pos.Line)
		}
		return nil, err
	}
	out := &Object{Kind: o.Kind, Name: o.Name, Comment: o.Comment, Type: k.number, Data: data}
	out.Text, err = k.text(family, data)
	return out, err
}

func kindNames() string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = string(kinds[i].name)
	}
	return strings.Join(names, ", ")
}

// Complete sets Kind and Text. It returns false for a kind unknown to nft(8) 1.0.6.
func (o *Object) Complete(family nft.Family) (known bool, err error) {
	k := kindOf(KindOf(o.Type))
	if k == nil {
		return false, nil
	}
	o.Kind = k.name
	if o.Text, err = k.text(family, o.Data); err != nil {
		return true, fmt.Errorf("parse %s %s: %w", o.Kind, o.Name, err)
	}
	return true, nil
}

// Ref returns the object's kind and name.
func (o *Object) Ref() Ref { return Ref{Kind: o.Kind, Name: o.Name} }

// Declaration is the inverse of Compile, with the state from a dump.
func (o *Object) Declaration() nft.Object {
	return nft.Object{Kind: o.Kind, Name: o.Name, Text: o.Text, Comment: o.Comment}
}

// Same ignores counts and used quotas. For a helper declared for inet, it accepts ip or ip6, as
// reported by the kernel.
func (o *Object) Same(other *Object) bool {
	if o.Kind != other.Kind || o.Name != other.Name || o.Comment != other.Comment {
		return false
	}
	if o.Text == other.Text {
		return true
	}
	a, errA := syntax.ParseObject(o.Kind, o.Text)
	b, errB := syntax.ParseObject(o.Kind, other.Text)
	if errA != nil || errB != nil {
		return false
	}
	align(a, b)
	return syntax.PrintObject(a) == syntax.PrintObject(b)
}
