package syntax

// Exthdr is a field of an extension of a packet header: "frag id", "tcp option
// maxseg size". Without a field it says whether the packet has the extension:
// "exthdr frag", "tcp option sack-perm".
type Exthdr struct {
	Pos
	Kind ExthdrKind
	// Name is the extension's name, or the number of a TCP option.
	Name string
	// NamePos is where Name begins.
	NamePos Pos
	// Field is empty where only the extension is named.
	Field string
	// FieldPos is where Field begins.
	FieldPos Pos
	// Index is the number in the brackets of "rt0 addr[1]" and "srh sid[1]".
	Index uint32
	// Raw is true for "tcp option @NAME,OFFSET,LENGTH"; both are in bits.
	Raw            bool
	Offset, Length uint32
}

// ExthdrKind says which header an extension belongs to.
type ExthdrKind uint8

// The kinds of extensions.
const (
	// ExthdrIPv6 is an extension header of IPv6.
	ExthdrIPv6 ExthdrKind = iota
	// ExthdrIPv4 is an option of IPv4.
	ExthdrIPv4
	// ExthdrTCP is an option of TCP.
	ExthdrTCP
	// ExthdrSCTP is a chunk of SCTP.
	ExthdrSCTP
)

// String returns the words before the extension's name.
func (k ExthdrKind) String() string {
	switch k {
	case ExthdrIPv4:
		return "ip option"
	case ExthdrTCP:
		return "tcp option"
	case ExthdrSCTP:
		return "sctp chunk"
	default:
		return "exthdr"
	}
}

// Rt is a property of the route that a packet takes: "rt nexthop", "rt mtu".
type Rt struct {
	Pos
	// Family is ip, ip6 or empty.
	Family string
	Key    string
	// KeyPos is where Key begins.
	KeyPos Pos
}

// ResetOption takes an option out of a TCP header: "reset tcp option
// timestamp".
type ResetOption struct {
	Pos
	Option *Exthdr
}

func (*Exthdr) expr() {}
func (*Rt) expr()     {}

func (*ResetOption) stmt() {}
