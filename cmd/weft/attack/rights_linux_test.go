package attack

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// Attacks by statements that the configuration does not grant.

// rightsConfig adds publishers that have some rights: marks is a publisher that may change
// other marks, and peer one that shares a table with it and may translate addresses.
const rightsConfig = configuration + `- name: marks
  match: {uid: 1236}
  allow:
    tables: [{name: "marks*"}, {name: shared}]
    marks: 0xff00
    log: 2
- name: peer
  match: {uid: 1237}
  allow:
    tables: [{name: shared}]
    nat: true
`

const (
	uidMarks = 1236
	uidPeer  = 1237
)

// attempt is a .nft file that must not be committed, and what its refusal says.
type attempt struct{ name, nft, want string }

// inChain returns a file with a base chain and rules.
func inChain(table, head string, rules ...string) string {
	return "table " + table + " {\n chain c {\n  " + head + "\n  " + strings.Join(rules, "\n  ") + "\n }\n}\n"
}

const outputHook = "type filter hook output priority -300; policy accept;"

// attempts makes attempts as a user, each of which must be refused for want of a right.
func (h *host) attempts(uid uint32, table string, list []attempt) {
	h.Helper()
	refused := 0
	for _, a := range list {
		err := h.applyFile(uid, a.name, a.nft)
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), a.want) {
			h.Errorf("%s: %v: want a refusal with %q", a.name, err, a.want)
			continue
		}
		refused++
	}
	h.observe("%d of %d fragments are refused", refused, len(list))
	if tables := h.ns.Run(h.T, "nft", "list", "tables"); strings.Contains(tables, table) {
		h.Errorf("the kernel has %s", tables)
	}
}

// TestHijackByHeader redirects connections of other programs by writing into headers (D11).
func TestHijackByHeader(t *testing.T) {
	h := newHost(t, options{config: rightsConfig})
	const want = "nat is not allowed"
	h.attack(func(h *host) {
		h.attempts(uidCNI, "cni", []attempt{
			{"port", inChain("ip cni", outputHook, "tcp dport 8000 tcp dport set 9000"), want},
			{"address", inChain("ip cni", outputHook, "udp dport 53 ip daddr set 127.0.0.1"), want},
			{"address6", inChain("ip6 cni", outputHook, "udp dport 53 ip6 daddr set ::1"), want},
			{"raw-address", inChain("ip cni", outputHook, "udp dport 53 @nh,128,32 set 0x7f000001"), want},
			{"raw-port", inChain("ip cni", outputHook, "meta l4proto tcp @th,16,16 set 9000"), want},
			{"raw-part", inChain("ip cni", outputHook, "meta l4proto tcp @th,24,8 set 5"), want},
			{"protocol", inChain("ip cni", outputHook, "ip protocol set 6"), want},
			{"regular", "table ip cni { chain r { tcp dport set 9000; }; }", want},
			{"tproxy", inChain("ip cni", outputHook, "tcp dport 80 tproxy to :9000"), want},
			{"ether", inChain("bridge cni", "type filter hook input priority 0;", "ether daddr set 00:11:22:33:44:55"), want},
			{"pkttype", inChain("bridge cni", "type filter hook input priority 0;", "meta pkttype set host"), want},
			{"arp", inChain("arp cni", "type filter hook output priority 0;", "arp saddr ip set 10.0.0.1"), want},
			{"map", "table ip cni { map m { type inet_service : ipv4_addr . inet_service; elements = { 53 : 127.0.0.1 . 53 }; }; }", want},
		})
	})
}

// TestMasqueradeMark sets the mark by which Services masquerade, or changes marks of others
// (D12).
func TestMasqueradeMark(t *testing.T) {
	attack(t, options{config: rightsConfig}, func(h *host) {
		h.attempts(uidCNI, "cni", []attempt{
			{"set", inChain("ip cni", outputHook, "meta mark set 0x4000"), "marks is not allowed"},
			{"or", inChain("ip cni", outputHook, "meta mark set meta mark or 0x4000"), "marks is not allowed"},
			{"map", "table ip cni { map m { type ipv4_addr : mark; elements = { 10.0.0.1 : 0x4000 }; }; }", "marks is not allowed"},
		})
		const want = "of the packet mark: allowed bits are 0x0000bf00"
		h.attempts(uidMarks, "ip marks", []attempt{
			{"set", inChain("ip marks", outputHook, "meta mark set 0x100"), want},
			{"or", inChain("ip marks", outputHook, "meta mark set meta mark or 0x4100"), want},
			{"clear", inChain("ip marks", outputHook, "meta mark set meta mark and 0x100"), want},
			{"toggle", inChain("ip marks", outputHook, "meta mark set meta mark xor 0x4000"), want},
			{"second", inChain("ip marks", outputHook, "meta mark set meta mark or 0x100 meta mark set meta mark or 0x4000"), want},
			{"copy", inChain("ip marks", outputHook, "meta mark set ct mark"), want},
			{"shift", inChain("ip marks", outputHook, "meta mark set meta mark << 6"), want},
			{"lookup", inChain("ip marks", outputHook, "meta mark set tcp dport map { 80 : 0x4000 }"), want},
			{"hash", inChain("ip marks", outputHook, "meta mark set jhash ip saddr mod 2 offset 16384"), want},
			{"map", "table ip marks { map m { type ipv4_addr : mark; elements = { 10.0.0.1 : 0x100 }; }; }", want},
		})
		if err := h.applyFile(uidMarks, "granted", inChain("ip marks", outputHook, "meta mark set meta mark & 0xffff40ff | 0x1200")); err != nil {
			h.Errorf("bits of the mask: %v", err)
		}
	})
}

// TestConntrackMapOfAService names a Service's address in a map whose flows are removed
// (D13).
func TestConntrackMapOfAService(t *testing.T) {
	attack(t, options{config: rightsConfig}, func(h *host) {
		err := h.apply(uidCNI, &weftv1.Fragment{
			Name: "flows", Tables: []*weftv1.Table{{Family: "ip", Name: "cni", Maps: []*weftv1.Set{{
				Name: "m", Type: "ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service", Role: weftv1.MapRole_MAP_ROLE_CONNTRACK,
				Elements: []*weftv1.Element{{Key: "10.96.0.10 . udp . 53", Value: "127.0.0.1 . 53"}},
			}}}},
		})
		h.observe("a conntrack map without the right nat: %v", status.Code(err))
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "nat is not allowed") {
			h.Errorf("error %v", err)
		}
	})
}

// TestStatementsWithoutRights has one attempt for each class (D23).
func TestStatementsWithoutRights(t *testing.T) {
	attack(t, options{config: rightsConfig}, func(h *host) {
		h.attempts(uidCNI, "cni", []attempt{
			{"drop", inChain("inet cni", "type filter hook input priority 0; policy drop;", "accept"), "policyDrop is not allowed"},
			{"route", inChain("ip cni", "type route hook output priority 0;", "accept"), "route is not allowed"},
			{"nat", inChain("ip cni", "type nat hook output priority 0;", "accept"), "nat is not allowed"},
			{"notrack", inChain("ip cni", outputHook, "notrack"), "conntrack is not allowed"},
			{"zone", inChain("ip cni", outputHook, "ct zone set 5"), "conntrack is not allowed"},
			{"ctmark", inChain("ip cni", outputHook, "ct mark set 5"), "conntrack is not allowed"},
			{"label", inChain("ip cni", outputHook, "ct label set 5"), "conntrack is not allowed"},
			{"event", inChain("ip cni", outputHook, "ct event set destroy"), "conntrack is not allowed"},
			{"helper", `table ip cni { ct helper h { type "ftp" protocol tcp; l3proto ip; }; }`, "conntrack is not allowed"},
			{"timeout", `table ip cni { ct timeout h { protocol tcp; l3proto ip; policy = { established : 1 }; }; }`, "conntrack is not allowed"},
			{"dup", inChain("ip cni", outputHook, "dup to 10.0.0.1"), "dup is not allowed"},
			{"queue", inChain("ip cni", outputHook, "queue num 0"), "queue is not allowed"},
			{"flowtable", "table ip cni { flowtable f { hook ingress priority 0; devices = { lo }; }; }", "flowtables is not allowed"},
			{"synproxy", inChain("ip cni", "type filter hook input priority 0;", "tcp flags syn synproxy mss 1460 wscale 7"), "synproxy is not allowed"},
			{"trace", inChain("ip cni", outputHook, "meta nftrace set 1"), "trace is not allowed"},
			{"ttl", inChain("ip cni", outputHook, "ip ttl set 255"), "mangle is not allowed"},
			{"option", inChain("ip cni", outputHook, "tcp flags syn tcp option maxseg size set 100"), "mangle is not allowed"},
			{"priority", inChain("ip cni", outputHook, "meta priority set 1:1"), "mangle is not allowed"},
			{"secmark", `table ip cni { secmark s { "system_u:object_r:x_t:s0"; }; }`, "secmark is not allowed"},
			{"log", inChain("ip cni", outputHook, "limit rate 1/hour log"), "log is not allowed"},
		})
		h.attempts(uidMarks, "netdev marks", []attempt{
			{"device", inChain("netdev marks", "type filter hook ingress device lo priority 0;", "accept"), "may not use device lo"},
			{"fwd", "table netdev marks { chain r { fwd to lo; }; }", "fwd is not allowed"},
			{"dup", "table netdev marks { chain r { dup to lo; }; }", "dup is not allowed"},
		})
	})
}

// TestLogFlood tries to log more than 2 packets a second.
func TestLogFlood(t *testing.T) {
	attack(t, options{config: rightsConfig}, func(h *host) {
		const every, much = "may not log every packet", "packets a second, and logs"
		h.attempts(uidMarks, "ip marks", []attempt{
			{"log", inChain("ip marks", outputHook, "log"), every},
			{"over", inChain("ip marks", outputHook, "limit rate over 1/hour log"), every},
			{"late", inChain("ip marks", outputHook, "log limit rate 1/hour"), every},
			{"bytes", inChain("ip marks", outputHook, "limit rate 1 bytes/second log"), every},
			{"named", "table ip marks { limit l { rate over 1/hour; }; chain c { limit name \"l\" log; }; }", every},
			{"element", "table ip marks { set s { type ipv4_addr; flags dynamic; }; chain c { add @s { ip saddr limit rate 1/hour } log; }; }", every},
			{"rate", inChain("ip marks", outputHook, "limit rate 1000/second log"), much},
			{"burst", inChain("ip marks", outputHook, "limit rate 1/hour burst 100000 packets log"), much},
			{"sum", inChain("ip marks", outputHook, "limit rate 1/second log", "limit rate 1/second log", "limit rate 1/second log"), much},
		})
		// What each fragment may have, all together may not.
		logging := func(table string) string { return inChain("ip "+table, outputHook, "limit rate 1/second log") }
		if err := h.applyFile(uidMarks, "one", logging("marks1")); err != nil {
			h.Errorf("one packet a second: %v", err)
		}
		if err := h.applyFile(uidMarks, "two", logging("marks2")); status.Code(err) != codes.PermissionDenied {
			h.Errorf("two fragments that log: %v", err)
		}
	})
}

func ruleIn(chain, text string) *weftv1.Chain {
	return &weftv1.Chain{Name: chain, Rules: []*weftv1.Rule{{Text: text}}}
}

// TestPatchesHaveNoMoreRights smuggles statements in patches, and elements into a map of
// another publisher's NAT rule.
func TestPatchesHaveNoMoreRights(t *testing.T) {
	attack(t, options{config: rightsConfig}, func(h *host) {
		cni := h.stream(aggregatortest.Context(h.T), uidCNI)
		table := &weftv1.Table{Family: "ip", Name: "shared", Chains: []*weftv1.Chain{ruleIn("cni", "accept")}}
		must(h.T, cni.put(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{table}}))
		if err := h.applyFile(uidPeer, "nat", `table ip shared {
			map to { type inet_service : ipv4_addr . inet_service; flags dynamic; elements = { 80 : 10.0.0.1 . 80 }; }
			chain c { type nat hook output priority 0; dnat to tcp dport map @to; }
		}`); err != nil {
			h.Fatal(err)
		}
		natMap := &weftv1.Set{Name: "to", Type: "inet_service : ipv4_addr . inet_service", Flags: []string{"dynamic"},
			Elements: []*weftv1.Element{{Key: "443", Value: "127.0.0.1 . 443"}}}
		refused := 0
		for _, p := range []*weftv1.TablePatch{
			{PutChains: []*weftv1.Chain{ruleIn("cni", "tcp dport set 9000")}},
			{PutChains: []*weftv1.Chain{ruleIn("n", "notrack")}},
			{PutChains: []*weftv1.Chain{ruleIn("n", "tcp dport 443 update @to { tcp dport : 127.0.0.1 . 443 }")}},
			{PutMaps: []*weftv1.Set{natMap}},
			{PutObjects: []*weftv1.Object{{Kind: "ct helper", Name: "h", Text: `type "ftp" protocol tcp; l3proto ip`}}},
			{PutFlowtables: []*weftv1.Flowtable{{Name: "f", Hook: "ingress", Priority: "0", Devices: []string{"lo"}}}},
		} {
			p.Family, p.Name = "ip", "shared"
			err := cni.patch("f", p)
			if err == nil || !strings.Contains(err.Error(), "is not allowed") {
				h.Errorf("patch %v: %v", p, err)
				continue
			}
			refused++
		}
		h.observe("%d of 6 patches are refused", refused)
		if list := h.ns.Run(h.T, "nft", "list", "table", "ip", "shared"); strings.Contains(list, "127.0.0.1") || strings.Contains(list, "9000") {
			h.Errorf("the shared table has %s", list)
		}
	})
}
