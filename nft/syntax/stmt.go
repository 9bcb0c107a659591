package syntax

// Stmt is a statement of a rule.
type Stmt interface {
	// Position returns where the statement begins.
	Position() Pos
	stmt()
}

// Match compares: "tcp dport 80", "ip saddr != @blocked".
type Match struct {
	Pos
	Left Expr
	// Op is "", "==", "!=", "<", ">", "<=", ">=" or "!". Empty means that the
	// type decides: equal, member of the set, any of the flags.
	Op string
	// OpPos is the place of the operator, or of the right side.
	OpPos Pos
	Right Expr
}

// Verdict ends the evaluation of a rule: accept, drop, return, continue, jump
// or goto, the last two with a Chain. It is also the data of verdict maps.
type Verdict struct {
	Pos
	Kind  string
	Chain string
}

// Vmap looks up a verdict: "tcp dport vmap { 22 : accept }".
type Vmap struct {
	Pos
	Key   Expr
	Table Expr
}

// Counter counts packets and bytes.
type Counter struct {
	Pos
	Packets, Bytes uint64
}

// Log logs the packet. A pointer that is nil was not given.
type Log struct {
	Pos
	Prefix *string
	// Level is empty or a syslog level such as "warn".
	Level string
	// Flags are "tcp sequence", "tcp options", "ip options", "skuid", "ether"
	// or "all".
	Flags          []string
	Group          *uint32
	Snaplen        *uint32
	QueueThreshold *uint32
}

// Limit matches until a rate is reached, or from there on when Over is set.
type Limit struct {
	Pos
	Over bool
	// Rate is in packets, or in Unit: bytes, kbytes or mbytes.
	Rate uint64
	Unit string
	// Per is second, minute, hour, day or week.
	Per string
	// Burst is 0 when it was not given; BurstUnit is packets, bytes, kbytes or
	// mbytes.
	Burst     uint64
	BurstUnit string
}

// Reject drops the packet and answers it.
type Reject struct {
	Pos
	// With is empty, icmp, icmpv6, icmpx or "tcp reset".
	With string
	// Code is nil or the ICMP code.
	Code Expr
}

// NAT is dnat, snat, masquerade or redirect.
type NAT struct {
	Pos
	Kind string
	// Family is ip, ip6 or empty.
	Family string
	// Addr and Port are nil when not given. Addr may be a Map whose data has
	// both.
	Addr, Port Expr
	// AddrPort is true for "ip addr . port to", the older way to say that a
	// map's data has both.
	AddrPort bool
	// Prefix is true for "ip prefix to".
	Prefix bool
	// Flags are random, fully-random and persistent.
	Flags []string
}

// Assign changes the packet or its metadata: "meta mark set 0x1".
type Assign struct {
	Pos
	Target Expr
	Value  Expr
}

// Dynamic changes a named set from the packet path:
// "update @seen { ip saddr timeout 5s }".
type Dynamic struct {
	Pos
	// Op is add, update or delete.
	Op   string
	Set  *SetRef
	Elem *Elem
}

// Notrack keeps the packet out of conntrack.
type Notrack struct{ Pos }

func (*Match) stmt()   {}
func (*Verdict) stmt() {}
func (*Vmap) stmt()    {}
func (*Counter) stmt() {}
func (*Log) stmt()     {}
func (*Limit) stmt()   {}
func (*Reject) stmt()  {}
func (*NAT) stmt()     {}
func (*Assign) stmt()  {}
func (*Dynamic) stmt() {}
func (*Notrack) stmt() {}
