package object

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Numbers of the kinds of objects: NFT_OBJECT_* of linux/netfilter/nf_tables.h.
const (
	objectCounter       = 1
	objectQuota         = 2
	objectCTHelper      = 3
	objectLimit         = 4
	objectCTTimeout     = 7
	objectSecMark       = 8
	objectCTExpectation = 9
	objectSynProxy      = 10
)

// objectTypes are the kinds in the order of [nft.ObjectKinds].
var objectTypes = [len(nft.ObjectKinds)]uint32{
	objectCounter, objectQuota, objectLimit, objectCTHelper, objectCTTimeout, objectCTExpectation, objectSecMark, objectSynProxy,
}

// Ref names an object of a table.
type Ref struct {
	Kind nft.ObjectKind
	Name string
}

// String returns the object in nft's words, such as "counter web".
func (r Ref) String() string { return string(r.Kind) + " " + r.Name }

// Type returns the kernel's number of the object's kind; 0 for an unknown kind.
func (r Ref) Type() uint32 {
	for i, kind := range nft.ObjectKinds {
		if kind == r.Kind {
			return objectTypes[i]
		}
	}
	return 0
}

// Object is a compiled named object.
type Object struct {
	Kind    nft.ObjectKind
	Name    string
	Comment string
	// Text is the declaration's body in canonical form, as in [nft.Object]. It is
	// that of the kernel: with a family where none was given, and in the greatest
	// units that fit.
	Text string
	// Type is the kernel's number of the kind (NFT_OBJECT_COUNTER, ...).
	Type uint32
	// Data are the attributes of NFTA_OBJ_DATA as the kernel takes them.
	Data []byte
}

// Compile compiles the declaration of a named object. Errors in its text are
// an *syntax.Error with a position in o.Text, wrapped.
func Compile(family nft.Family, o *nft.Object) (*Object, error) {
	out, err := compileObject(family, o)
	if err != nil {
		return nil, fmt.Errorf("compile %s %s: %w", o.Kind, o.Name, err)
	}
	return out, nil
}

func compileObject(family nft.Family, o *nft.Object) (*Object, error) {
	typ := Ref{Kind: o.Kind}.Type()
	if typ == 0 {
		return nil, fmt.Errorf("unknown kind of object %q: want counter, quota, limit, ct helper, ct timeout, ct expectation, secmark or synproxy", o.Kind)
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
	data, err := encodeObject(family, body)
	if err != nil {
		var e *syntax.Error
		if errors.As(err, &e) && e.Line == "" {
			e.Line = syntax.SourceLine(o.Text, e.Pos.Line)
		}
		return nil, err
	}
	out := &Object{Kind: o.Kind, Name: o.Name, Comment: o.Comment, Type: typ, Data: data}
	out.Text, err = objectText(family, typ, data)
	return out, err
}

// Parse makes an object of what the kernel holds: the content of NFTA_OBJ_DATA
// and NFTA_OBJ_USERDATA. It returns nil for an object of a kind that nft(8) 1.0.6
// does not make.
func Parse(family nft.Family, name string, typ uint32, data, userData []byte) (*Object, error) {
	out := &Object{Name: name, Type: typ, Data: append([]byte(nil), data...)}
	for i, t := range objectTypes {
		if t == typ {
			out.Kind = nft.ObjectKinds[i]
		}
	}
	if out.Kind == "" {
		return nil, nil //nolint:nilnil // nothing that could be declared
	}
	var err error
	if out.Text, err = objectText(family, typ, data); err != nil {
		return nil, fmt.Errorf("parse %s %s: %w", out.Kind, name, err)
	}
	if out.Comment, err = userdata.ParseObject(userData); err != nil {
		return nil, fmt.Errorf("parse %s %s: %w", out.Kind, name, err)
	}
	return out, nil
}

// Ref returns what names the object.
func (o *Object) Ref() Ref { return Ref{Kind: o.Kind, Name: o.Name} }

// Declaration returns the object in nft's words, as CompileObject takes it; with the
// state that it holds, where it came from a dump.
func (o *Object) Declaration() nft.Object {
	return nft.Object{Kind: o.Kind, Name: o.Name, Text: o.Text, Comment: o.Comment}
}

// The parts of a text that two objects may differ in all the same: what they have
// counted, and the family of a helper.
var (
	objectUsed    = regexp.MustCompile(` used \d+ [km]?bytes$`)
	objectL3Proto = regexp.MustCompile(`; l3proto \w+$`)
)

// Same reports whether two objects are declared alike, whatever they have counted. A
// helper for inet is the same as one for the families that the kernel has found the
// helper in.
func (o *Object) Same(other *Object) bool {
	if o.Kind != other.Kind || o.Name != other.Name || o.Comment != other.Comment {
		return false
	}
	a, b := o.Text, other.Text
	switch o.Kind {
	case nft.ObjectCounter:
		return true
	case nft.ObjectQuota:
		a, b = objectUsed.ReplaceAllString(a, ""), objectUsed.ReplaceAllString(b, "")
	case nft.ObjectCTHelper:
		const inet = "; l3proto inet"
		if strings.HasSuffix(a, inet) || strings.HasSuffix(b, inet) {
			a, b = objectL3Proto.ReplaceAllString(a, ""), objectL3Proto.ReplaceAllString(b, "")
		}
	}
	return a == b
}
