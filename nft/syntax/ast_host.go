package syntax

// Socket is what the socket of a packet says: "socket transparent",
// "socket cgroupv2 level 2".
type Socket struct {
	Pos
	// Key is transparent, mark, wildcard or cgroupv2.
	Key string
	// KeyPos is where Key begins.
	KeyPos Pos
	// Level is that of cgroupv2.
	Level uint32
}

// OSF is the operating system that a TCP SYN seems to come from: "osf name".
type OSF struct {
	Pos
	// TTL is how the TTL is compared: loose, skip, or empty for exactly.
	TTL string
	// Key is name or version.
	Key string
}

// IPsec is a state of the IPsec transformation of a packet:
// "ipsec in spnum 1 reqid", "ipsec out ip saddr".
type IPsec struct {
	Pos
	// Dir is in or out.
	Dir string
	// Spnum counts the states of the packet from 0.
	Spnum uint32
	// L3 is ip or ip6 for addresses, otherwise empty.
	L3 string
	// Key is spi, reqid, saddr or daddr.
	Key string
}

// Hash is a hash value: "jhash ip saddr mod 4 seed 0x1 offset 8", "symhash mod
// 2".
type Hash struct {
	Pos
	// X is what jhash hashes; nil means symhash.
	X Expr
	// Seed is nil where the kernel chooses one.
	Seed        *uint32
	Mod, Offset uint32
}

func (*Socket) expr() {}
func (*OSF) expr()    {}
func (*IPsec) expr()  {}
func (*Hash) expr()   {}
