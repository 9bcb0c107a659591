package datatype

// The symbol tables of nft 1.0.6, in the order of `nft describe`.
var (
	nfProtoSymbols = []Symbol{
		{"ipv4", 2},
		{"ipv6", 10},
	}
	etherTypeSymbols = []Symbol{
		{"ip", 0x800},
		{"arp", 0x806},
		{"ip6", 0x86dd},
		{"8021q", 0x8100},
		{"8021ad", 0x88a8},
		{"vlan", 0x8100},
	}
	arpOpSymbols = []Symbol{
		{"request", 0x1},
		{"reply", 0x2},
		{"rrequest", 0x3},
		{"rreply", 0x4},
		{"inrequest", 0x8},
		{"inreply", 0x9},
		{"nak", 0xa},
	}
	icmpTypeSymbols = []Symbol{
		{"echo-reply", 0},
		{"destination-unreachable", 3},
		{"source-quench", 4},
		{"redirect", 5},
		{"echo-request", 8},
		{"router-advertisement", 9},
		{"router-solicitation", 10},
		{"time-exceeded", 11},
		{"parameter-problem", 12},
		{"timestamp-request", 13},
		{"timestamp-reply", 14},
		{"info-request", 15},
		{"info-reply", 16},
		{"address-mask-request", 17},
		{"address-mask-reply", 18},
	}
	tcpFlagSymbols = []Symbol{
		{"fin", 0x1},
		{"syn", 0x2},
		{"rst", 0x4},
		{"psh", 0x8},
		{"ack", 0x10},
		{"urg", 0x20},
		{"ecn", 0x40},
		{"cwr", 0x80},
	}
	dccpSymbols = []Symbol{
		{"request", 0x0},
		{"response", 0x1},
		{"data", 0x2},
		{"ack", 0x3},
		{"dataack", 0x4},
		{"closereq", 0x5},
		{"close", 0x6},
		{"reset", 0x7},
		{"sync", 0x8},
		{"syncack", 0x9},
	}
	mhTypeSymbols = []Symbol{
		{"binding-refresh-request", 0},
		{"home-test-init", 1},
		{"careof-test-init", 2},
		{"home-test", 3},
		{"careof-test", 4},
		{"binding-update", 5},
		{"binding-acknowledgement", 6},
		{"binding-error", 7},
		{"fast-binding-update", 8},
		{"fast-binding-acknowledgement", 9},
		{"fast-binding-advertisement", 10},
		{"experimental-mobility-header", 11},
		{"home-agent-switch-message", 12},
	}
	ifTypeSymbols = []Symbol{
		{"ether", 0x1},
		{"ppp", 0x200},
		{"ipip", 0x300},
		{"ipip6", 0x301},
		{"loopback", 0x304},
		{"sit", 0x308},
		{"ipgre", 0x30a},
	}
	ctStateSymbols = []Symbol{
		{"invalid", 0x1},
		{"new", 0x8},
		{"established", 0x2},
		{"related", 0x4},
		{"untracked", 0x40},
	}
	ctDirSymbols = []Symbol{
		{"original", 0},
		{"reply", 1},
	}
	ctStatusSymbols = []Symbol{
		{"expected", 0x1},
		{"seen-reply", 0x2},
		{"assured", 0x4},
		{"confirmed", 0x8},
		{"snat", 0x10},
		{"dnat", 0x20},
		{"dying", 0x200},
	}
	icmpv6TypeSymbols = []Symbol{
		{"destination-unreachable", 1},
		{"packet-too-big", 2},
		{"time-exceeded", 3},
		{"parameter-problem", 4},
		{"echo-request", 128},
		{"echo-reply", 129},
		{"mld-listener-query", 130},
		{"mld-listener-report", 131},
		{"mld-listener-done", 132},
		{"mld-listener-reduction", 132},
		{"nd-router-solicit", 133},
		{"nd-router-advert", 134},
		{"nd-neighbor-solicit", 135},
		{"nd-neighbor-advert", 136},
		{"nd-redirect", 137},
		{"router-renumbering", 138},
		{"ind-neighbor-solicit", 141},
		{"ind-neighbor-advert", 142},
		{"mld2-listener-report", 143},
	}
	pktTypeSymbols = []Symbol{
		{"host", 0},
		{"unicast", 0},
		{"broadcast", 1},
		{"multicast", 2},
		{"other", 3},
	}
	icmpCodeSymbols = []Symbol{
		{"net-unreachable", 0},
		{"host-unreachable", 1},
		{"prot-unreachable", 2},
		{"port-unreachable", 3},
		{"net-prohibited", 9},
		{"host-prohibited", 10},
		{"admin-prohibited", 13},
		{"frag-needed", 4},
	}
	icmpv6CodeSymbols = []Symbol{
		{"no-route", 0},
		{"admin-prohibited", 1},
		{"addr-unreachable", 3},
		{"port-unreachable", 4},
		{"policy-fail", 5},
		{"reject-route", 6},
	}
	icmpxCodeSymbols = []Symbol{
		{"port-unreachable", 1},
		{"admin-prohibited", 3},
		{"no-route", 0},
		{"host-unreachable", 2},
	}
	dscpSymbols = []Symbol{
		{"cs0", 0x00},
		{"cs1", 0x08},
		{"cs2", 0x10},
		{"cs3", 0x18},
		{"cs4", 0x20},
		{"cs5", 0x28},
		{"cs6", 0x30},
		{"cs7", 0x38},
		{"df", 0x00},
		{"be", 0x00},
		{"lephb", 0x01},
		{"af11", 0x0a},
		{"af12", 0x0c},
		{"af13", 0x0e},
		{"af21", 0x12},
		{"af22", 0x14},
		{"af23", 0x16},
		{"af31", 0x1a},
		{"af32", 0x1c},
		{"af33", 0x1e},
		{"af41", 0x22},
		{"af42", 0x24},
		{"af43", 0x26},
		{"va", 0x2c},
		{"ef", 0x2e},
	}
	ecnSymbols = []Symbol{
		{"not-ect", 0x0}, //nolint:misspell // nft's own name
		{"ect1", 0x1},
		{"ect0", 0x2},
		{"ce", 0x3},
	}
	fibAddrTypeSymbols = []Symbol{
		{"unspec", 0},
		{"unicast", 1},
		{"local", 2},
		{"broadcast", 3},
		{"anycast", 4},
		{"multicast", 5},
		{"blackhole", 6},
		{"unreachable", 7},
		{"prohibit", 8},
	}
	booleanSymbols = []Symbol{
		{"exists", 1},
		{"missing", 0},
	}
	ctEventSymbols = []Symbol{
		{"new", 0x1},
		{"related", 0x2},
		{"destroy", 0x4},
		{"reply", 0x8},
		{"assured", 0x10},
		{"protoinfo", 0x20},
		{"helper", 0x40},
		{"mark", 0x80},
		{"seqadj", 0x100},
		{"secmark", 0x200},
		{"label", 0x400},
	}
	igmpTypeSymbols = []Symbol{
		{"membership-query", 17},
		{"membership-report-v1", 18},
		{"membership-report-v2", 22},
		{"membership-report-v3", 34},
		{"leave-group", 23},
	}
	daySymbols = []Symbol{
		{"Sunday", 0},
		{"Monday", 1},
		{"Tuesday", 2},
		{"Wednesday", 3},
		{"Thursday", 4},
		{"Friday", 5},
		{"Saturday", 6},
	}
	// The tables of /etc/iproute2 as distributions install them.
	realmSymbols    = []Symbol{{"cosmos", 0}}
	devGroupSymbols = []Symbol{{"default", 0}}
	// The loopback interface is the first of every network namespace.
	ifIndexSymbols = []Symbol{{"lo", 1}}
	// The protocols of Debian 12.
	inetProtoSymbols = []Symbol{
		{"tcp", 6},
		{"udp", 17},
		{"sctp", 132},
		{"icmp", 1},
		{"ipv6-icmp", 58},
		{"ip", 0},
		{"igmp", 2},
		{"ggp", 3},
		{"ipencap", 4},
		{"st", 5},
		{"egp", 8},
		{"igp", 9},
		{"pup", 12},
		{"hmp", 20},
		{"xns-idp", 22},
		{"rdp", 27},
		{"iso-tp4", 29},
		{"dccp", 33},
		{"xtp", 36},
		{"ddp", 37},
		{"idpr-cmtp", 38},
		{"ipv6", 41},
		{"ipv6-route", 43},
		{"ipv6-frag", 44},
		{"idrp", 45},
		{"rsvp", 46},
		{"gre", 47},
		{"esp", 50},
		{"ah", 51},
		{"skip", 57},
		{"ipv6-nonxt", 59},
		{"ipv6-opts", 60},
		{"rspf", 73},
		{"vmtp", 81},
		{"eigrp", 88},
		{"ospf", 89},
		{"ax.25", 93},
		{"ipip", 94},
		{"etherip", 97},
		{"encap", 98},
		{"pim", 103},
		{"ipcomp", 108},
		{"vrrp", 112},
		{"l2tp", 115},
		{"isis", 124},
		{"fc", 133},
		{"mobility-header", 135},
		{"udplite", 136},
		{"mpls-in-ip", 137},
		{"manet", 138},
		{"hip", 139},
		{"shim6", 140},
		{"wesp", 141},
		{"rohc", 142},
		{"ethernet", 143},
	}
)

// protocolAlias returns the number of the names beside those in
// inetProtoSymbols: the keywords of nft's grammar, and the aliases of
// /etc/protocols.
func protocolAlias(name string) (uint64, bool) {
	switch name {
	case "icmpv6":
		return 58, true
	case "comp":
		return 108, true
	}
	return lookupName(protocolAliases[:], name)
}

// protocolAliases are the aliases of Debian 12's /etc/protocols, and the second
// name of 0.
var protocolAliases = [...]Symbol{
	{"hopopt", 0}, {"IP", 0}, {"HOPOPT", 0}, {"ICMP", 1}, {"IGMP", 2}, {"GGP", 3}, {"IP-ENCAP", 4}, {"ST", 5},
	{"TCP", 6}, {"EGP", 8}, {"IGP", 9}, {"PUP", 12}, {"UDP", 17}, {"HMP", 20}, {"XNS-IDP", 22}, {"RDP", 27},
	{"ISO-TP4", 29}, {"DCCP", 33}, {"XTP", 36}, {"DDP", 37}, {"IDPR-CMTP", 38}, {"IPv6", 41}, {"IPv6-Route", 43},
	{"IPv6-Frag", 44}, {"IDRP", 45}, {"RSVP", 46}, {"GRE", 47}, {"IPSEC-ESP", 50}, {"IPSEC-AH", 51}, {"SKIP", 57},
	{"IPv6-ICMP", 58}, {"IPv6-NoNxt", 59}, {"IPv6-Opts", 60}, {"RSPF", 73}, {"CPHB", 73}, {"VMTP", 81}, {"EIGRP", 88},
	{"OSPFIGP", 89}, {"AX.25", 93}, {"IPIP", 94}, {"ETHERIP", 97}, {"ENCAP", 98}, {"PIM", 103}, {"IPCOMP", 108},
	{"VRRP", 112}, {"L2TP", 115}, {"ISIS", 124}, {"SCTP", 132}, {"FC", 133}, {"Mobility-Header", 135}, {"UDPLite", 136},
	{"MPLS-in-IP", 137}, {"HIP", 139}, {"Shim6", 140}, {"WESP", 141}, {"ROHC", 142}, {"Ethernet", 143},
}
