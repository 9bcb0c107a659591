package syntax

// Queue hands the packet over to a program in user space.
type Queue struct {
	Pos
	// Num is nil (queue 0), a number, a range of numbers, a generator of numbers
	// or a Map.
	Num Expr
	// Flags are bypass and fanout.
	Flags []string
}

// Dup sends a copy of the packet elsewhere.
type Dup struct {
	Pos
	// To is an address, or a device in tables of family netdev.
	To Expr
	// Device is nil when not given.
	Device Expr
}

// Fwd sends the packet out of a device.
type Fwd struct {
	Pos
	// Family is ip or ip6 where there is an Addr, else empty.
	Family string
	// Addr is the neighbour, nil when not given.
	Addr   Expr
	Device Expr
}

// TProxy hands the packet over to a local socket.
type TProxy struct {
	Pos
	// Family is ip, ip6 or empty.
	Family string
	// Addr and Port are nil when not given.
	Addr, Port Expr
}

// SynProxy answers the first packets of a TCP connection.
type SynProxy struct {
	Pos
	// MSS and WScale are nil when not given.
	MSS                 *uint16
	WScale              *uint8
	Timestamp, SackPerm bool
}

// FlowAdd puts the connection into a flowtable: "flow add @f".
type FlowAdd struct {
	Pos
	Flowtable string
	// NamePos is where the flowtable's name begins.
	NamePos Pos
}

func (*Queue) stmt()    {}
func (*Dup) stmt()      {}
func (*Fwd) stmt()      {}
func (*TProxy) stmt()   {}
func (*SynProxy) stmt() {}
func (*FlowAdd) stmt()  {}
