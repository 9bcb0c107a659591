package datatype

// By enum datatypes of nft 1.0.6.
var (
	Verdict     = &Type{Name: "verdict", Desc: "netfilter verdict", ID: 1, kind: kindVerdict}
	NFProto     = &Type{Name: "nf_proto", Desc: "netfilter protocol", ID: 2, Bits: 8, Symbols: symbols["nf_proto"]}
	Bitmask     = &Type{Name: "bitmask", Desc: "bitmask", ID: 3, Order: HostEndian, Bitmask: true}
	Integer     = &Type{Name: "integer", Desc: "integer", ID: 4, Order: BigEndian}
	String      = &Type{Name: "string", Desc: "string", ID: 5, Order: HostEndian, kind: kindString}
	LLAddr      = &Type{Name: "ll_addr", Desc: "link layer address", ID: 6, Order: BigEndian, kind: kindLinkLayer}
	IPv4Addr    = &Type{Name: "ipv4_addr", Desc: "IPv4 address", ID: 7, Bits: 32, Order: BigEndian, kind: kindIPv4}
	IPv6Addr    = &Type{Name: "ipv6_addr", Desc: "IPv6 address", ID: 8, Bits: 128, Order: BigEndian, kind: kindIPv6}
	EtherAddr   = &Type{Name: "ether_addr", Desc: "Ethernet address", ID: 9, Bits: 48, Order: BigEndian, kind: kindEther}
	EtherType   = &Type{Name: "ether_type", Desc: "Ethernet protocol", ID: 10, Bits: 16, Order: BigEndian, Symbols: symbols["ether_type"], format: "0x%04x"}
	ARPOp       = &Type{Name: "arp_op", Desc: "ARP operation", ID: 11, Bits: 16, Order: BigEndian, Symbols: symbols["arp_op"]}
	InetProto   = &Type{Name: "inet_proto", Desc: "Internet protocol", ID: 12, Bits: 8, Symbols: symbols["inet_proto"]}
	InetService = &Type{Name: "inet_service", Desc: "internet network service", ID: 13, Bits: 16, Order: BigEndian}
	ICMPType    = &Type{Name: "icmp_type", Desc: "ICMP type", ID: 14, Bits: 8, Order: BigEndian, Symbols: symbols["icmp_type"]}
	TCPFlag     = &Type{Name: "tcp_flag", Desc: "TCP flag", ID: 15, Bits: 8, Order: BigEndian, Bitmask: true, Symbols: symbols["tcp_flag"], format: "0x%x"}
	DCCPPktType = &Type{Name: "dccp_pkttype", Desc: "DCCP packet type", ID: 16, Bits: 4, Symbols: symbols["dccp_pkttype"]}
	MHType      = &Type{Name: "mh_type", Desc: "Mobility Header Type", ID: 17, Bits: 8, Order: BigEndian, Symbols: symbols["mh_type"]}
	Time        = &Type{Name: "time", Desc: "relative time", ID: 18, Bits: 32, Order: HostEndian, kind: kindTime}
	Mark        = &Type{Name: "mark", Desc: "packet mark", ID: 19, Bits: 32, Order: HostEndian, format: "0x%08x"}
	IfIndex     = &Type{Name: "iface_index", Desc: "network interface index", ID: 20, Bits: 32, Order: HostEndian, Symbols: symbols["iface_index"]}
	IfType      = &Type{Name: "iface_type", Desc: "network interface type", ID: 21, Bits: 16, Order: HostEndian, Symbols: symbols["iface_type"]}
	Realm       = &Type{Name: "realm", Desc: "routing realm", ID: 22, Bits: 32, Order: HostEndian, Symbols: symbols["realm"]}
	ClassID     = &Type{Name: "classid", Desc: "TC classid", ID: 23, Bits: 32, Order: HostEndian, kind: kindClassID}
	UID         = &Type{Name: "uid", Desc: "user ID", ID: 24, Bits: 32, Order: HostEndian}
	GID         = &Type{Name: "gid", Desc: "group ID", ID: 25, Bits: 32, Order: HostEndian}
	CTState     = &Type{Name: "ct_state", Desc: "conntrack state", ID: 26, Bits: 32, Order: HostEndian, Bitmask: true, Symbols: symbols["ct_state"], format: "0x%x"}
	CTDir       = &Type{Name: "ct_dir", Desc: "conntrack direction", ID: 27, Bits: 8, Symbols: symbols["ct_dir"]}
	CTStatus    = &Type{Name: "ct_status", Desc: "conntrack status", ID: 28, Bits: 32, Order: HostEndian, Bitmask: true, Symbols: symbols["ct_status"], format: "0x%x"}
	ICMPv6Type  = &Type{Name: "icmpv6_type", Desc: "ICMPv6 type", ID: 29, Bits: 8, Order: BigEndian, Symbols: symbols["icmpv6_type"]}
	CTLabel     = &Type{Name: "ct_label", Desc: "conntrack label", ID: 30, Bits: 128, Order: HostEndian, Bitmask: true, kind: kindLabel}
	PktType     = &Type{Name: "pkt_type", Desc: "packet type", ID: 31, Bits: 8, Order: HostEndian, Symbols: symbols["pkt_type"]}
	ICMPCode    = &Type{Name: "icmp_code", Desc: "icmp code", ID: 32, Bits: 8, Order: BigEndian, Symbols: symbols["icmp_code"]}
	ICMPv6Code  = &Type{Name: "icmpv6_code", Desc: "icmpv6 code", ID: 33, Bits: 8, Order: BigEndian, Symbols: symbols["icmpv6_code"]}
	ICMPxCode   = &Type{Name: "icmpx_code", Desc: "icmpx code", ID: 34, Bits: 8, Order: BigEndian, Symbols: symbols["icmpx_code"]}
	DevGroup    = &Type{Name: "devgroup", Desc: "devgroup name", ID: 35, Bits: 32, Order: HostEndian, Symbols: symbols["devgroup"]}
	DSCP        = &Type{Name: "dscp", Desc: "Differentiated Services Code Point", ID: 36, Bits: 6, Order: BigEndian, Symbols: symbols["dscp"], format: "0x%02x"}
	ECN         = &Type{Name: "ecn", Desc: "Explicit Congestion Notification", ID: 37, Bits: 2, Order: BigEndian, Symbols: symbols["ecn"]}
	FIBAddrType = &Type{Name: "fib_addrtype", Desc: "fib address type", ID: 38, Bits: 32, Order: HostEndian, Symbols: symbols["fib_addrtype"]}
	Boolean     = &Type{Name: "boolean", Desc: "boolean type", ID: 39, Bits: 1, Symbols: symbols["boolean"]}
	CTEvent     = &Type{Name: "ct_event", Desc: "conntrack event bits", ID: 40, Bits: 32, Order: HostEndian, Bitmask: true, Symbols: symbols["ct_event"], format: "0x%x"}
	IfName      = &Type{Name: "ifname", Desc: "network interface name", ID: 41, Bits: 128, Order: HostEndian, kind: kindIfName}
	IGMPType    = &Type{Name: "igmp_type", Desc: "IGMP type", ID: 42, Bits: 8, Order: BigEndian, Symbols: symbols["igmp_type"]}
	// Date is "time" in nft: nanoseconds since 1970 (meta time).
	Date = &Type{Name: "time", Desc: "time of packet reception", ID: 43, Bits: 64, Order: HostEndian, kind: kindDate}
	// Hour is the second of the day (meta hour), in UTC.
	Hour     = &Type{Name: "hour", Desc: "hour of day of packet reception", ID: 44, Bits: 32, Order: HostEndian, kind: kindHour}
	Day      = &Type{Name: "day", Desc: "day of week of packet reception", ID: 45, Bits: 8, Symbols: symbols["day"]}
	CGroupV2 = &Type{Name: "cgroupsv2", Desc: "cgroupsv2 path", ID: 46, Bits: 64, Order: HostEndian}
)

// accepted by nft 1.0.6 in "type" declarations, by number
var declarable = [...]*Type{
	Verdict, NFProto, Bitmask, Integer, String, LLAddr, IPv4Addr, IPv6Addr,
	EtherAddr, EtherType, ARPOp, InetProto, InetService, ICMPType, TCPFlag,
	DCCPPktType, MHType, Time, Mark, IfIndex, IfType, Realm, ClassID, UID, GID,
	CTState, CTDir, CTStatus, ICMPv6Type, PktType, ICMPCode, ICMPv6Code,
	ICMPxCode, DevGroup, DSCP, ECN, FIBAddrType, Boolean, IfName, IGMPType,
	CGroupV2,
}

// rejected by nft 1.0.6 in "type" declarations
var undeclarable = [...]*Type{CTLabel, CTEvent, Date, Hour, Day}
