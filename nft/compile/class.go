package compile

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Classes of all features of rules. LANGUAGE.md lists these tables.

var objectClasses = map[nft.ObjectKind]nft.Class{
	nft.ObjectCounter: nft.ClassFilter, nft.ObjectQuota: nft.ClassFilter, nft.ObjectLimit: nft.ClassFilter,
	nft.ObjectCTHelper: nft.ClassConntrack, nft.ObjectCTTimeout: nft.ClassConntrack, nft.ObjectCTExpectation: nft.ClassConntrack,
	nft.ObjectSecMark:  nft.ClassSecMark,
	nft.ObjectSynProxy: nft.ClassSynProxy,
}

var keyClasses = map[string]map[string]nft.Class{
	"meta": {
		"mark": nft.ClassMarks, "priority": nft.ClassMangle, "nftrace": nft.ClassTrace, "secmark": nft.ClassSecMark,
		// pkttype decides whether a bridge delivers a frame to the host.
		"pkttype": nft.ClassNAT,
	},
	"ct": {
		"mark": nft.ClassConntrack, "label": nft.ClassConntrack, "zone": nft.ClassConntrack, "event": nft.ClassConntrack,
		"secmark": nft.ClassSecMark,
	},
}

// ClassMangle has TCP options and fields without effect on the packet's route or connection.
var fieldClasses = map[string]map[nft.Class][]string{
	"ether": {nft.ClassNAT: {"daddr", "saddr", "type"}},
	"vlan":  {nft.ClassMangle: {"pcp", "dei", "cfi"}, nft.ClassNAT: {"id", "type"}},
	"arp":   {nft.ClassNAT: {"htype", "ptype", "hlen", "plen", "operation", "saddr ether", "saddr ip", "daddr ether", "daddr ip"}},
	"ip": {
		nft.ClassMangle: {"dscp", "ecn", "id", "ttl", "checksum"},
		nft.ClassNAT:    {"version", "hdrlength", "length", "frag-off", "protocol", "saddr", "daddr"},
	},
	"ip6": {
		nft.ClassMangle: {"dscp", "ecn", "flowlabel", "hoplimit"},
		nft.ClassNAT:    {"version", "length", "nexthdr", "saddr", "daddr"},
	},
	"icmp":   {nft.ClassMangle: {"checksum"}, nft.ClassNAT: {"type", "code", "id", "sequence", "gateway", "mtu"}},
	"icmpv6": {nft.ClassMangle: {"checksum"}, nft.ClassNAT: {"type", "code", "param-problem", "mtu", "id", "sequence", "max-delay"}},
	"igmp":   {nft.ClassMangle: {"checksum"}, nft.ClassNAT: {"type", "mrt", "group"}},
	"tcp": {
		nft.ClassMangle: {"reserved", "window", "checksum", "urgptr"},
		nft.ClassNAT:    {"sport", "dport", "sequence", "ackseq", "doff", "flags"},
	},
	"udp":     {nft.ClassMangle: {"checksum"}, nft.ClassNAT: {"sport", "dport", "length"}},
	"udplite": {nft.ClassMangle: {"csumcov", "checksum"}, nft.ClassNAT: {"sport", "dport"}},
	"sctp":    {nft.ClassMangle: {"checksum"}, nft.ClassNAT: {"sport", "dport", "vtag"}},
	"dccp":    {nft.ClassNAT: {"sport", "dport", "type"}},
	"th":      {nft.ClassNAT: {"sport", "dport"}},
	"ah":      {nft.ClassMangle: {"reserved"}, nft.ClassNAT: {"nexthdr", "hdrlength", "spi", "sequence"}},
	"esp":     {nft.ClassNAT: {"spi", "sequence"}},
	"comp":    {nft.ClassMangle: {"flags"}, nft.ClassNAT: {"nexthdr", "cpi"}},
}

// The default is ClassNAT: rules of other publishers can translate addresses to the data or write
// it into a header.
var dataClasses = map[string]nft.Class{
	"mark": nft.ClassMarks, "classid": nft.ClassMangle, "dscp": nft.ClassMangle, "ecn": nft.ClassMangle,
	"ct_label": nft.ClassConntrack, "ct_event": nft.ClassConntrack,
}

// ObjectClass returns the class of a kind of named object, 0 if unknown.
func ObjectClass(kind nft.ObjectKind) nft.Class { return objectClasses[kind] }

// SetClass returns the classes of the elements: map data decides its classes, sets and verdict maps
// are of ClassFilter.
func SetClass(s *set.Set) nft.ClassSet {
	var all nft.ClassSet
	switch {
	case !s.Map, s.Verdict:
		return all.With(nft.ClassFilter)
	case s.Object != "":
		return all.With(objectClasses[s.Object])
	}
	if len(s.Data.Names) == 0 {
		return all.With(nft.ClassNAT)
	}
	for _, name := range s.Data.Names {
		class, ok := dataClasses[name]
		if !ok {
			class = nft.ClassNAT
		}
		all = all.With(class)
	}
	return all
}

func (r *ruleCompiler) classes(s syntax.Stmt) nft.ClassSet {
	if d, ok := s.(*syntax.Dynamic); ok {
		return SetClass(r.named(d.Set))
	}
	class := classOf(s)
	if class == 0 {
		fail(s.Position(), "statement %T has no class", s)
	}
	return nft.ClassSet(0).With(class)
}

func classOf(s syntax.Stmt) nft.Class {
	switch s := s.(type) {
	case *syntax.Match, *syntax.Verdict, *syntax.Vmap, *syntax.Reject,
		*syntax.Counter, *syntax.Limit, *syntax.Quota, *syntax.ConnLimit, *syntax.Meter:
		return nft.ClassFilter
	case *syntax.Log:
		return nft.ClassLog
	case *syntax.NAT, *syntax.TProxy:
		return nft.ClassNAT
	case *syntax.Notrack:
		return nft.ClassConntrack
	case *syntax.ResetOption:
		return nft.ClassMangle
	case *syntax.Dup:
		return nft.ClassDup
	case *syntax.Fwd:
		return nft.ClassFwd
	case *syntax.Queue:
		return nft.ClassQueue
	case *syntax.FlowAdd:
		return nft.ClassFlowtables
	case *syntax.SynProxy:
		return nft.ClassSynProxy
	case *syntax.Assign:
		return assignedClass(s.Target)
	case *syntax.ObjectRef:
		return objectClasses[s.Kind]
	default:
		return 0
	}
}

func assignedClass(target syntax.Expr) nft.Class {
	switch x := target.(type) {
	case *syntax.Meta:
		return keyClasses["meta"][x.Key]
	case *syntax.CT:
		return keyClasses["ct"][x.Key]
	case *syntax.Payload:
		return fieldClass(x.Proto, x.Field)
	case *syntax.RawPayload:
		return nft.ClassNAT
	case *syntax.Exthdr:
		return nft.ClassMangle
	default:
		return 0
	}
}

func fieldClass(header, field string) nft.Class {
	for class, fields := range fieldClasses[header] {
		for _, f := range fields {
			if f == field {
				return class
			}
		}
	}
	return 0
}
