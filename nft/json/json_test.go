package json

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestJSONRules has statements of libnftables-json(5) and what they mean.
func TestJSONRules(t *testing.T) {
	for _, tt := range []struct{ json, want string }{
		{`{"match": {"op": "!=", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": {"prefix": {"addr": "10.0.0.0", "len": 8}}}}`, "ip saddr != 10.0.0.0/8"},
		{`{"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "eth*"}}`, `iifname "eth*"`},
		{`{"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": {"set": ["lo", "accept"]}}}`, `iifname { "lo", "accept" }`},
		{`{"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": ["established", "related"]}}`, "ct state established,related"},
		{`{"match": {"op": "==", "left": {"ct": {"key": "expiration"}}, "right": 90}}`, "ct expiration == 90s"},
		{`{"match": {"op": "==", "left": {"ct": {"key": "ip saddr", "dir": "reply"}}, "right": "10.0.0.1"}}`, "ct reply ip saddr == 10.0.0.1"},
		{`{"match": {"op": "==", "left": {"&": [{"payload": {"protocol": "tcp", "field": "flags"}}, ["syn", "ack"]]}, "right": ["syn", "ack"]}}`, "tcp flags & (syn | ack) == syn | ack"},
		{`{"match": {"op": "==", "left": {"concat": [{"payload": {"protocol": "ip", "field": "saddr"}}, {"meta": {"key": "oifname"}}]}, "right": {"set": [{"concat": [{"range": ["10.0.0.1", "10.0.0.9"]}, "lo"]}]}}}`,
			`ip saddr . oifname { 10.0.0.1-10.0.0.9 . "lo" }`},
		{`{"match": {"op": "==", "left": {"fib": {"result": "oif", "flags": ["saddr", "iif"]}}, "right": false}}`, "fib saddr . iif oif missing"},
		{`{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": "@ports"}}`, "tcp dport @ports"},
		{`{"vmap": {"key": {"payload": {"protocol": "tcp", "field": "dport"}}, "data": {"set": [[22, {"accept": null}], [{"elem": {"val": {"range": [80, 90]}, "comment": "web"}}, {"jump": {"target": "a"}}], ["*", {"drop": null}]]}}}`,
			`tcp dport vmap { 22 : accept, 80-90 comment "web" : jump a, * : drop }`},
		{`{"mangle": {"key": {"meta": {"key": "mark"}}, "value": {"map": {"key": {"payload": {"protocol": "tcp", "field": "dport"}}, "data": "@marks"}}}}`, "meta mark set tcp dport map @marks"},
		{`{"dnat": {"family": "ip6", "addr": {"range": ["fe80::1", "fe80::2"]}, "port": {"range": [80, 90]}, "flags": ["random", "persistent"]}}`, "dnat ip6 to [fe80::1]-[fe80::2]:80-90 persistent,random"},
		{`{"snat": {"family": "ip", "addr": {"prefix": {"addr": "10.0.0.0", "len": 24}}, "flags": "netmap", "type_flags": "prefix"}}`, "snat ip prefix to 10.0.0.0/24"},
		{`{"masquerade": null}`, "masquerade"},
		{`{"redirect": {"port": 8080, "flags": "random"}}`, "redirect to :8080 random"},
		{`{"reject": {"type": "icmpx", "expr": "host-unreachable"}}`, "reject with icmpx host-unreachable"},
		{`{"log": {"prefix": "no: ", "group": 2, "snaplen": 64, "flags": ["tcp sequence", "skuid"]}}`, `log prefix "no: " group 2 snaplen 64 flags tcp sequence flags skuid`},
		{`{"limit": {"rate": 10, "burst": 5, "per": "second", "inv": true}}`, "limit rate over 10/second burst 5 packets"},
		{`{"limit": {"rate": 10, "burst": 0, "per": "hour", "rate_unit": "mbytes", "burst_unit": "bytes"}}`, "limit rate 10 mbytes/hour"},
		{`{"match": {"op": "==", "left": {"tcp option": {"base": 200, "offset": 0, "len": 8}}, "right": true}}`, "tcp option 200 exists"},
		{`{"match": {"op": "==", "left": {"tcp option": {"base": 200, "offset": 16, "len": 8}}, "right": 7}}`, "tcp option @200,16,8 7"},
		{`{"reset": {"tcp option": {"base": 254, "offset": 0, "len": 0}}}`, "reset tcp option 254"},
		{`{"counter": {"packets": -1, "bytes": 0}}`, "counter packets 18446744073709551615 bytes 0"},
		{`{"ct count": {"val": -1, "inv": true}}`, "ct count over 4294967295"},
		{`{"set": {"op": "update", "elem": {"elem": {"val": {"payload": {"protocol": "ip", "field": "saddr"}}, "timeout": 5}}, "set": "@seen", "stmt": [{"limit": {"rate": 1, "burst": 5, "per": "second"}}]}}`,
			"update @seen { ip saddr timeout 5s limit rate 1/second burst 5 packets }"},
		{`{"tproxy": {"family": "ip6", "addr": "::1", "port": 80}}`, "tproxy ip6 to [::1]:80"},
		{`{"dup": {"addr": "10.0.0.1", "dev": "lo"}}`, `dup to 10.0.0.1 device "lo"`},
		{`{"fwd": {"family": "ip", "addr": "10.0.0.1", "dev": "lo"}}`, `fwd ip to 10.0.0.1 device "lo"`},
		{`{"queue": {"num": {"range": [1, 3]}, "flags": ["bypass", "fanout"]}}`, "queue flags bypass,fanout to 1-3"},
		{`{"flow": {"op": "add", "flowtable": "@f"}}`, "flow add @f"},
		{`{"synproxy": {"mss": 1460, "wscale": 7, "flags": ["timestamp", "sack-perm"]}}`, "synproxy mss 1460 wscale 7 timestamp sack-perm"},
		{`{"quota": {"val": 3, "val_unit": "mbytes", "used": 1, "used_unit": "kbytes", "inv": true}}`, "quota over 3 mbytes used 1 kbytes"},
		{`{"counter": "c"}`, `counter name "c"`},
		{`{"ct helper": {"map": {"key": {"payload": {"protocol": "tcp", "field": "dport"}}, "data": "@helpers"}}}`, "ct helper set tcp dport map @helpers"},
		{`{"secmark": "s"}`, `meta secmark set "s"`},
		{`{"meter": {"name": "m", "size": 9, "key": {"payload": {"protocol": "ip", "field": "saddr"}}, "stmt": {"counter": null}}}`, "meter m size 9 { ip saddr counter }"},
		{`{"mangle": {"key": {"meta": {"key": "mark"}}, "value": {"jhash": {"expr": {"payload": {"protocol": "ip", "field": "saddr"}}, "mod": 4, "seed": 7, "offset": 2}}}}`, "meta mark set jhash ip saddr mod 4 seed 7 offset 2"},
		{`{"mangle": {"key": {"meta": {"key": "mark"}}, "value": {"numgen": {"mode": "inc", "mod": 3, "offset": 0}}}}`, "meta mark set numgen inc mod 3"},
		{`{"match": {"op": "==", "left": {"rt": {"key": "nexthop", "family": "ip"}}, "right": "10.0.0.1"}}`, "rt ip nexthop 10.0.0.1"},
		{`{"match": {"op": "==", "left": {"ipsec": {"dir": "in", "spnum": 1, "family": "ip", "key": "saddr"}}, "right": "10.0.0.1"}}`, "ipsec in spnum 1 ip saddr 10.0.0.1"},
		{`{"match": {"op": "==", "left": {"osf": {"key": "name", "ttl": "skip"}}, "right": "Linux"}}`, `osf ttl skip name "Linux"`},
		{`{"match": {"op": "==", "left": {"exthdr": {"name": "frag"}}, "right": true}}`, "exthdr frag exists"},
		{`{"match": {"op": "==", "left": {"ip option": {"name": "rr", "field": "ptr"}}, "right": 4}}`, "ip option rr ptr 4"},
		{`{"match": {"op": "==", "left": {"payload": {"base": "nh", "offset": 8, "len": 8}}, "right": 5}}`, "@nh,8,8 5"},
		{`{"match": {"op": "==", "left": {"&": [{"meta": {"key": "mark"}}, {"<<": [1, 2]}]}, "right": 4}}`, "meta mark & 1 << 2 == 4"},
		{`"tcp dport 80 accept"`, "tcp dport 80 accept"},
	} {
		tables, err := Parse("", document(tt.json))
		if err != nil {
			t.Errorf("%s: %v", tt.json, err)
			continue
		}
		if got := tables[0].Chains[0].Rules[0].Text; got != tt.want {
			t.Errorf("%s\n  is  %s\n  not %s", tt.json, got, tt.want)
		}
	}
}

// document is a document with one rule.
func document(stmt string) string {
	return `{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {"family": "inet", "name": "t", "handle": 1}},
		{"chain": {"family": "inet", "table": "t", "name": "c"}},
		{"rule": {"family": "inet", "table": "t", "chain": "c", "handle": 4, "expr": [` + stmt + `]}}]}`
}

// TestJSONObjects reads everything except rules.
func TestJSONObjects(t *testing.T) {
	tables := nfttest.Must(ParseFile("x.json", ` {"nftables": [
		{"table": {"family": "ip", "name": "t", "flags": ["dormant", "owner"]}},
		{"chain": {"family": "ip", "table": "t", "name": "in", "type": "filter", "hook": "input", "prio": -10, "policy": "drop"}},
		{"chain": {"family": "ip", "table": "t", "name": "a"}},
		{"set": {"family": "ip", "name": "s", "table": "t", "type": ["ipv4_addr", "ifname"], "flags": ["interval", "timeout"], "timeout": 60, "gc-interval": 5, "size": 9, "policy": "memory", "comment": "c",
			"elem": [{"concat": [{"prefix": {"addr": "10.0.0.0", "len": 8}}, "lo"]}, {"elem": {"val": {"concat": ["10.0.0.1", "lo"]}, "timeout": 90, "expires": 3, "comment": "x", "counter": {"packets": 1, "bytes": 2}}}], "stmt": [{"counter": null}]}},
		{"map": {"family": "ip", "name": "m", "table": "t", "type": "inet_service", "map": "verdict", "elem": [[22, {"accept": null}], ["*", {"goto": {"target": "a"}}]]}},
		{"set": {"family": "ip", "name": "w", "table": "t", "type": "mark"}},
		{"rule": {"family": "ip", "table": "t", "chain": "a", "comment": "hi", "expr": [{"set": {"op": "add", "elem": {"meta": {"key": "mark"}}, "set": "@w"}}]}},
		{"counter": {"family": "ip", "name": "n", "table": "t", "packets": 1, "bytes": 2}},
		{"quota": {"family": "ip", "name": "q", "table": "t", "bytes": 1024, "used": 3, "inv": true}},
		{"limit": {"family": "ip", "name": "l", "table": "t", "rate": 5, "per": "minute", "burst": 7, "comment": "five"}},
		{"secmark": {"family": "ip", "name": "sm", "table": "t", "context": "system_u:object_r:x_t:s0"}},
		{"synproxy": {"family": "ip", "name": "sp", "table": "t", "mss": 1460, "wscale": 7, "flags": ["timestamp", "sack-perm"]}},
		{"ct helper": {"family": "ip", "name": "h", "table": "t", "type": "ftp", "protocol": "tcp", "l3proto": "ip"}},
		{"ct timeout": {"family": "ip", "name": "to", "table": "t", "protocol": "tcp", "l3proto": "ip", "policy": {"established": 100, "close": 4}}},
		{"ct expectation": {"family": "ip", "name": "e", "table": "t", "protocol": "udp", "dport": 99, "timeout": 2000, "size": 12, "l3proto": "ip"}},
		{"flowtable": {"family": "ip", "name": "f", "table": "t", "hook": "ingress", "prio": 0, "dev": ["eth0", "eth1"]}}
	]}`))
	want := []nft.Table{{
		Family: nft.FamilyIP, Name: "t", Flags: []string{"dormant"},
		Chains: []nft.Chain{
			{Name: "in", Type: "filter", Hook: "input", Priority: "-10", Policy: "drop"},
			{Name: "a", Rules: []nft.Rule{{Text: "add @w { meta mark }", Comment: "hi"}}},
		},
		Sets: []nft.Set{
			{
				Name: "s", Type: "ipv4_addr . ifname", Flags: []string{"interval", "timeout"}, Timeout: time.Minute, GCInterval: 5 * time.Second,
				Size: 9, Policy: "memory", Comment: "c", Stateful: []string{"counter"},
				Elements: []nft.Element{
					{Key: `10.0.0.0/8 . "lo"`},
					{Key: `10.0.0.1 . "lo"`, Timeout: 90 * time.Second, Expires: 3 * time.Second, Comment: "x", Stateful: []string{"counter packets 1 bytes 2"}},
				},
			},
			{Name: "w", Type: "mark", Flags: []string{"dynamic"}},
		},
		Maps: []nft.Map{{Name: "m", Type: "inet_service : verdict", Elements: []nft.Element{{Key: "22", Value: "accept"}, {Key: "*", Value: "goto a"}}}},
		Objects: []nft.Object{
			{Kind: "counter", Name: "n", Text: "packets 1 bytes 2"},
			{Kind: "quota", Name: "q", Text: "over 1024 bytes used 3 bytes"},
			{Kind: "limit", Name: "l", Text: "rate 5/minute burst 7 packets", Comment: "five"},
			{Kind: "secmark", Name: "sm", Text: `"system_u:object_r:x_t:s0"`},
			{Kind: "synproxy", Name: "sp", Text: "mss 1460; wscale 7; timestamp sack-perm"},
			{Kind: "ct helper", Name: "h", Text: `type "ftp" protocol tcp; l3proto ip`},
			{Kind: "ct timeout", Name: "to", Text: "protocol tcp; l3proto ip; policy = { close : 4, established : 100 }"},
			{Kind: "ct expectation", Name: "e", Text: "protocol udp; dport 99; timeout 2000ms; size 12; l3proto ip"},
		},
		Flowtables: []nft.Flowtable{{Name: "f", Hook: "ingress", Priority: "0", Devices: []string{"eth0", "eth1"}}},
	}}
	if !reflect.DeepEqual(tables, want) {
		t.Errorf("got  %+v\nwant %+v", tables, want)
	}
}

// TestEitherForm parses files in nft's own syntax and in JSON.
func TestEitherForm(t *testing.T) {
	for _, text := range []string{"table inet t { chain c { notrack; }; }", document(`{"notrack": null}`)} {
		tables, err := ParseFile("f", text)
		if err != nil || len(tables) != 1 || tables[0].Chains[0].Rules[0].Text != "notrack" {
			t.Errorf("%s: %+v, %v", text, tables, err)
		}
		again, places, err := ParsePositions("f", text)
		if err != nil || places == nil || !reflect.DeepEqual(again, tables) {
			t.Errorf("%s with places: %+v, %v", text, again, err)
		}
	}
	// With an error, ParsePositions returns what it understood.
	tables, places, err := ParsePositions("f", document(`{"frobnicate": null}`))
	if err == nil || len(tables) != 1 || places == nil {
		t.Errorf("an unknown statement: %+v, %v", tables, err)
	}
	if e := places.Error(ruleset.DeclarationID{Kind: "chain", Name: "c"}, "x"); e.Pos.IsValid() {
		t.Errorf("a place in JSON is known: %v", e)
	}
}

// TestJSONErrors checks the place and the text of errors.
func TestJSONErrors(t *testing.T) {
	deep := strings.Repeat(`{"&": [`, syntax.MaxDepth+2) + "1" + strings.Repeat(", 1]}", syntax.MaxDepth+2)
	for _, tt := range []struct{ json, want string }{
		{`{"nftables": [}`, "1:15: parse JSON: invalid character '}'"},
		{`{"nftables": {}}`, "parse JSON: json: cannot unmarshal object"},
		{`{"nftables": []} x`, "unexpected data after the first value"},
		{`{"nftables": [5]}`, "nftables[0]: unexpected 5: want an object with one member"},
		{`{"nftables": [{"flush": {"ruleset": null}}]}`, "nftables[0]: flush is not possible here: a document declares"},
		{`{"nftables": [{"table": {"family": "ipx", "name": "t"}}]}`, `nftables[0].table.family: unexpected "ipx"`},
		{`{"nftables": [{"table": {"family": "ip", "name": "a b"}}]}`, `nftables[0].table.name: unexpected "a b": want a name`},
		{`{"nftables": [{"widget": {"family": "ip", "table": "t"}}]}`, `nftables[0].widget: unknown object "widget"`},
		{`{"nftables": [{"set": {"family": "ip", "table": "t", "name": "s", "type": "mark", "size": 1.5}}]}`, "nftables[0].set.size: unexpected 1.5"},
		{document(`{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": ["dport"]}}, "right": 80}}`), "nftables[3].rule.expr[0].match.left.payload.field: unexpected a list: want a word of nft"},
		{document(`{"match": {"op": "~", "left": {"meta": {"key": "mark"}}, "right": 80}}`), `nftables[3].rule.expr[0].match.op: unexpected "~"`},
		{document(`{"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": {"range": [1]}}}`), "nftables[3].rule.expr[0].match.right.range: unexpected 1 ends of a range: want 2"},
		{document(`{"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": 1.5}}`), "nftables[3].rule.expr[0].match.right: unexpected 1.5: want a number"},
		{document(`{"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "a\"b"}}`), "cannot be written in nft"},
		{document(`{"jump": {"target": "a; drop"}}`), "nftables[3].rule.expr[0].jump.target: unexpected"},
		{document(`{"xt": {"type": "match", "name": "tcp"}}`), "xt is not possible here"},
		{document(`{"frobnicate": null}`), `unknown statement "frobnicate"`},
		{document(`{"match": {"op": "==", "left": {"frobnicate": 1}, "right": 1}}`), `nftables[3].rule.expr[0].match.left: unknown expression "frobnicate"`},
		{document(`{"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": ` + deep + `}}`), fmt.Sprintf("nested deeper than %d levels", syntax.MaxDepth)},
		{document(`{"log": {"prefix": "a", "level": "loud"}}`), `nftables[3].rule.expr: it reads "log prefix \"a\" level loud": 1:`},
	} {
		tables, err := Parse("f", tt.json)
		list := (*ruleset.ErrorList)(nil)
		if !errors.As(err, &list) || tables != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.120s: tables %v, error %v: want %s", tt.json, tables, err, tt.want)
		}
	}
}

// FuzzParseJSON reads anything. It does not panic, returns tables or an error, and every
// rule is canonical text of nft.
func FuzzParseJSON(f *testing.F) {
	f.Add(document(`{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": {"set": [1, {"range": [2, 3]}]}}}`))
	f.Add(document(`{"dnat": {"family": "ip6", "addr": "fe80::1", "port": 80}}`))
	f.Add(`{"nftables": [{"map": {"family": "ip", "name": "m", "table": "t", "type": "mark", "map": "verdict", "elem": [["*", {"drop": null}]]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		tables, err := Parse("", text)
		if err != nil {
			if tables != nil {
				t.Fatalf("tables and the error %v", err)
			}
			return
		}
		for _, table := range tables {
			for _, c := range table.Chains {
				for _, r := range c.Rules {
					if again, err := syntax.ParseRule(table.Family, r.Text); err != nil || syntax.Print(again) != r.Text {
						t.Fatalf("rule %q: %v", r.Text, err)
					}
				}
			}
		}
	})
}
