package desired

import (
	"errors"
	"fmt"
	"strings"
)

// ErrStale means that an update was compiled against declarations that have
// changed since. Compile it again with the present Scope and apply it again.
var ErrStale = errors.New("declarations have changed since the update was compiled")

// Reason classifies a violation; the numbers are those of Reason in
// weft.proto.
type Reason uint8

// The reasons for which an update is rejected. This package itself gives
// invalid, conflict, reference and snapshot needed.
const (
	ReasonUnspecified    Reason = 0
	ReasonSyntax         Reason = 1
	ReasonInvalid        Reason = 2
	ReasonConflict       Reason = 3
	ReasonReference      Reason = 4
	ReasonKernel         Reason = 5
	ReasonPermission     Reason = 6
	ReasonLimit          Reason = 7
	ReasonSnapshotNeeded Reason = 8
)

// String returns the reason in words.
func (r Reason) String() string {
	switch r {
	case ReasonUnspecified:
		return "unspecified"
	case ReasonSyntax:
		return "syntax"
	case ReasonInvalid:
		return "invalid"
	case ReasonConflict:
		return "conflict"
	case ReasonReference:
		return "reference"
	case ReasonKernel:
		return "kernel"
	case ReasonPermission:
		return "permission"
	case ReasonLimit:
		return "limit"
	case ReasonSnapshotNeeded:
		return "snapshot needed"
	default:
		return fmt.Sprintf("reason(%d)", uint8(r))
	}
}

// Violation describes an error in an update: where it is, what is wrong and
// what to do.
type Violation struct {
	// Object is the place in the update, such as
	// "table ip weft chain input rule 3" (rules count from 1).
	Object  string
	Message string
	Reason  Reason
}

// String returns "object: message".
func (v Violation) String() string {
	if v.Object == "" {
		return v.Message
	}
	return v.Object + ": " + v.Message
}

// Rejection is the error of an invalid update.
type Rejection struct {
	Fragment   Key
	Violations []Violation
}

// Error names the fragment, the first violation and the number of others.
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

// maxViolations bounds the violations of one rejection.
const maxViolations = 32
