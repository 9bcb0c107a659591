package nft

import "slices"

// ObjectKind is a kind of named object, in nft's words.
type ObjectKind string

// The kinds of nft(8) 1.0.6. Names are unique in a table among objects of a kind.
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

// Statement returns the words before a name in a statement, such as "ct helper set".
func (k ObjectKind) Statement() string { return statements[k] }

// IsValid means one of ObjectKinds.
func (k ObjectKind) IsValid() bool { return slices.Contains(ObjectKinds[:], k) }

// Object is a named object.
type Object struct {
	Kind ObjectKind
	Name string
	// Text is the text between the braces, without the comment; "; " separates statements: "packets
	// 0 bytes 0", "over 25 mbytes", "rate 10/second", `type "ftp" protocol tcp; l3proto ip`.
	Text    string
	Comment string
}

// Flowtable is a flowtable; "flow add @name" adds connections.
type Flowtable struct {
	Name string
	// ingress, or empty without Priority
	Hook string
	// as in Chain
	Priority string
	Devices  []string
	// only "offload"
	Flags   []string
	Counter bool
}
