package compile

import (
	"cmp"
	"reflect"
	"slices"

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

// Fields without effect on the packet's route or connection are of ClassMangle, as are TCP options;
// other fields are of ClassNAT.
var mangleFields = map[string][]string{
	"vlan":    {"pcp", "dei", "cfi"},
	"ip":      {"dscp", "ecn", "id", "ttl", "checksum"},
	"ip6":     {"dscp", "ecn", "flowlabel", "hoplimit"},
	"icmp":    {"checksum"},
	"icmpv6":  {"checksum"},
	"igmp":    {"checksum"},
	"tcp":     {"reserved", "window", "checksum", "urgptr"},
	"udp":     {"checksum"},
	"udplite": {"csumcov", "checksum"},
	"sctp":    {"checksum"},
	"ah":      {"reserved"},
	"comp":    {"flags"},
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
		all = all.With(cmp.Or(dataClasses[name], nft.ClassNAT))
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
	case *syntax.Assign:
		return assignedClass(s.Target)
	case *syntax.ObjectRef:
		return objectClasses[s.Kind]
	default:
		return kinds[reflect.TypeOf(s)].class
	}
}

func assignedClass(target syntax.Expr) nft.Class {
	switch x := target.(type) {
	case *syntax.Meta:
		return keyClasses["meta"][x.Key]
	case *syntax.CT:
		return keyClasses["ct"][x.Key]
	case *syntax.Payload:
		if slices.Contains(mangleFields[x.Proto], x.Field) {
			return nft.ClassMangle
		}
		return nft.ClassNAT
	case *syntax.RawPayload:
		return nft.ClassNAT
	case *syntax.Exthdr:
		return nft.ClassMangle
	default:
		return 0
	}
}
