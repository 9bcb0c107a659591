package desired

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// ErrStale means that declarations have changed since the update was compiled. Compile and apply it
// again.
var ErrStale = errors.New("declarations have changed since the update was compiled")

// Reason has the numbers of Violation.Reason in weft.proto.
type Reason uint8

const (
	ReasonInvalid        Reason = 2
	ReasonConflict       Reason = 3
	ReasonReference      Reason = 4
	ReasonPermission     Reason = 6
	ReasonLimit          Reason = 7
	ReasonSnapshotNeeded Reason = 8
)

// Place is a table, a part (chain, set, object), or a rule or element in a part. The zero value is
// a whole fragment.
type Place struct {
	Table nft.TableID
	// Kind is "chain", "set", "map" or the kind of a named object, such as "ct helper"; empty for
	// the table.
	Kind, Name string
	// Rule is the number among the fragment's rules in the chain, from 1, or 0. Key is an
	// element's.
	Rule int
	Key  string
}

// String returns the words of nft: "table ip weft chain input rule 3".
func (p Place) String() string {
	if p == (Place{}) {
		return ""
	}
	return strings.TrimSuffix("table "+p.Table.String()+" "+p.InTable(), " ")
}

func (p Place) InTable() string {
	switch {
	case p.Kind == "":
		return ""
	case p.Rule > 0:
		return fmt.Sprintf("%s %s rule %d", p.Kind, p.Name, p.Rule)
	case p.Key != "":
		return p.Kind + " " + p.Name + " element " + p.Key
	default:
		return p.Kind + " " + p.Name
	}
}

type Violation struct {
	Object  Place
	Message string
	Reason  Reason
	Err     error
}

func (v Violation) String() string {
	if v.Object == (Place{}) {
		return v.Message
	}
	return v.Object.String() + ": " + v.Message
}

type Rejection struct {
	Fragment   Key
	Violations []Violation
}

func (r *Rejection) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "apply fragment %s", r.Fragment)
	if len(r.Violations) > 0 {
		fmt.Fprintf(&b, ": %s", r.Violations[0])
	}
	if n := len(r.Violations) - 1; n > 0 {
		fmt.Fprintf(&b, " (and %d more)", n)
	}
	return b.String()
}

const MaxViolations = 32
