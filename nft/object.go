package nft

import "slices"

// ObjectKind is the kind of a named object, in nft's words.
type ObjectKind string

// The kinds of nft(8) 1.0.6. A name is unique among the objects of a kind in a table.
const (
	ObjectCounter       ObjectKind = "counter"
	ObjectQuota         ObjectKind = "quota"
	ObjectLimit         ObjectKind = "limit"
	ObjectCTHelper      ObjectKind = "ct helper"
	ObjectCTTimeout     ObjectKind = "ct timeout"
	ObjectCTExpectation ObjectKind = "ct expectation"
	ObjectSecMark       ObjectKind = "secmark"
	ObjectSynProxy      ObjectKind = "synproxy"
)

// ObjectKinds are all kinds. Do not modify.
var ObjectKinds = [...]ObjectKind{
	ObjectCounter, ObjectQuota, ObjectLimit, ObjectCTHelper, ObjectCTTimeout, ObjectCTExpectation, ObjectSecMark, ObjectSynProxy,
}

var statements = map[ObjectKind]string{
	ObjectCounter:       "counter name",
	ObjectQuota:         "quota name",
	ObjectLimit:         "limit name",
	ObjectCTHelper:      "ct helper set",
	ObjectCTTimeout:     "ct timeout set",
	ObjectCTExpectation: "ct expectation set",
	ObjectSecMark:       "meta secmark set",
	ObjectSynProxy:      "synproxy name",
}

// Statement returns the words before an object's name in a statement, such as "ct helper set", or "" for an
// unknown kind.
func (k ObjectKind) Statement() string { return statements[k] }

// IsValid reports whether the kind is one of ObjectKinds.
func (k ObjectKind) IsValid() bool { return slices.Contains(ObjectKinds[:], k) }

// Object is a named object for rules and maps.
type Object struct {
	Kind ObjectKind
	Name string
	// Text is the text between the braces of the declaration, without the comment. Statements are separated
	// by "; ". It may be empty for a counter, quota or synproxy. Examples: "packets 0 bytes 0", "over 25
	// mbytes", "rate 10/second", `type "ftp" protocol tcp; l3proto ip`.
	Text    string
	Comment string
}

// Flowtable is a flowtable, to which "flow add @name" adds connections.
type Flowtable struct {
	Name string
	// ingress, or empty if Priority is empty too
	Hook string
	// number, or name with an optional offset, as in "filter + 10"
	Priority string
	Devices  []string
	// only "offload"
	Flags []string
	// Counter means that flows are counted.
	Counter bool
}
