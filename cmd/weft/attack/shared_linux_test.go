package attack

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// Attacks through a table that two publishers may use. The owner is big, the attacker cni.

// ownTable is what the owner has in the shared table.
const ownTable = `table inet shared {
	counter seen { packets 0 bytes 0 }
	set blocked { type ipv4_addr; elements = { 10.8.0.1 } }
	map ports { type inet_service : verdict; elements = { 80 : accept } }
	chain in {
		type filter hook input priority 20; policy accept;
		ip saddr @blocked drop
		tcp dport vmap @ports
		counter name "seen"
	}
	chain extra { }
}
`

// TestSharedTable adds to the parts of another publisher, and refers to them.
func TestSharedTable(t *testing.T) {
	h := newHost(t, options{})
	must(t, h.applyFile(uidBig, "rules", ownTable))
	list := func() string { return h.ns.Run(h.T, "nft", "-s", "list", "table", "inet", "shared") }
	before := list()
	h.attack(func(h *host) {
		for what, text := range map[string]string{
			"rules in a chain":       `table inet shared { chain in { type filter hook input priority 20; policy accept; accept; } ; }`,
			"rules in another chain": `table inet shared { chain extra { drop; } ; }`,
			"elements of a set":      `table inet shared { set blocked { type ipv4_addr; elements = { 127.0.0.1 } ; } ; }`,
			"elements of a map":      `table inet shared { map ports { type inet_service : verdict; elements = { 80 : drop } ; } ; }`,
			"a counter":              `table inet shared { counter seen { packets 0 bytes 0 ; } ; }`,
			"dynamic elements":       `table inet shared { chain mine { type filter hook input priority 5; add @blocked { ip saddr } ; } ; }`,
			"a use of a counter":     `table inet shared { chain mine { type filter hook input priority 5; counter name "seen" ; } ; }`,
			"a jump":                 `table inet shared { chain mine { type filter hook input priority 5; jump extra ; } ; }`,
			"a verdict":              `table inet shared { map mine { type inet_service : verdict; elements = { 80 : goto extra } ; } ; }`,
			"dormant":                `table inet shared { flags dormant; }`,
		} {
			err := h.applyFile(uidCNI, "evil", text)
			if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "publisher big") {
				h.Errorf("%s: %v", what, err)
			}
		}
		// What is the attacker's own is accepted.
		if err := h.applyFile(uidCNI, "good", `table inet shared { chain mine { type filter hook input priority 5; counter; } ; }`); err != nil {
			h.Error(err)
		}
		if _, err := weftv1.NewPublisherClient(h.as(uidCNI)).Delete(aggregatortest.Context(h.T), &weftv1.DeleteRequest{Fragment: &weftv1.FragmentName{Name: "good"}}); err != nil {
			h.Error(err)
		}
		if after := list(); after != before {
			h.Errorf("the table is now\n%s\nand was\n%s", after, before)
		}
		h.observe("10 ways into a shared table: each is refused and names the owner")
	})
}

// TestDormantFirst makes a shared table dormant before its other publisher comes.
func TestDormantFirst(t *testing.T) {
	attack(t, options{}, func(h *host) {
		must(h.T, h.applyFile(uidCNI, "evil", `table inet shared { flags dormant; chain mine { type filter hook input priority 5; counter; } ; }`))
		must(h.T, h.applyFile(uidBig, "rules", ownTable))
		if list := h.ns.Run(h.T, "nft", "list", "table", "inet", "shared"); strings.Contains(list, "dormant") {
			h.Errorf("the other publisher's chains are off:\n%s", list)
		}
		h.observe("a dormant table wakes up when another publisher comes")
	})
}

// TestPinnedChain keeps another publisher from removing its chain, by a reference.
func TestPinnedChain(t *testing.T) {
	h := newHost(t, options{})
	must(t, h.applyFile(uidBig, "rules", ownTable))
	h.attack(func(h *host) {
		err := h.applyFile(uidCNI, "pin", `table inet shared { chain mine { ip saddr @blocked jump extra ; } ; }`)
		if status.Code(err) != codes.PermissionDenied {
			h.Errorf("a reference: %v", err)
		}
		if err := h.applyFile(uidBig, "rules", `table inet shared { chain other { } ; }`); err != nil {
			h.Errorf("the owner cannot remove its chain: %v", err)
		}
		h.observe("a reference to another's chain does not keep it from being removed")
	})
}

// TestKeywords names things by words of nft, and gives log prefixes variables.
func TestKeywords(t *testing.T) {
	attack(t, options{}, func(h *host) {
		var accepted []string
		for _, word := range []string{"drop", "th", "ip", "set", "last", "ether", "accept", "vmap", "."} {
			for kind, format := range map[string]string{
				"chain": "table inet shared { chain %s { } ; }", "set": "table inet shared { set %s { type ipv4_addr ; } ; }",
				"counter": "table inet shared { counter %s { packets 0 bytes 0 ; } ; }",
			} {
				if h.applyFile(uidCNI, "evil", fmt.Sprintf(format, word)) == nil {
					accepted = append(accepted, kind+" "+word)
				}
			}
		}
		if h.applyFile(uidCNI, "evil", `table inet shared { chain mine { log prefix "$HOME" ; } ; }`) == nil {
			accepted = append(accepted, "a variable")
		}
		h.observe("names that are words of nft: accepted are %v", accepted)
	})
}
