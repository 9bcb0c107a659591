package kernel

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// objectsFile has objects of all kinds that every kernel supports.
const objectsFile = `
table inet weft {
	counter web { comment "pages" }
	counter mail { packets 12 bytes 3400 }
	quota daily { over 25 mbytes used 3 kbytes }
	quota guest { 512 bytes }
	limit pings { rate 10/second }
	limit bulk { rate over 3 mbytes/minute burst 8 kbytes; comment "slow" }
	limit rare { rate 1/day burst 2 packets }
	ct timeout fast { protocol tcp; l3proto ip; policy = { established : 300, close : 4 }
	}
	ct timeout dns { protocol udp; policy = { replied : 5 }
	}
	ct expectation rtsp { protocol tcp; dport 9876; timeout 2m; size 12; l3proto ip6
	}
	synproxy front { mss 1460 wscale 7 timestamp sack-perm }
	synproxy back { mss 1200 wscale 3 }
}
table ip weft {
	ct helper std { type "ftp" protocol tcp; l3proto ip
	}
}
table netdev weft {
	chain several { type filter hook ingress devices = { lo, veth0 } priority 5; policy drop;
	}
	chain one { type filter hook ingress device lo priority filter; policy accept; comment "one"
	}
}
`

// rareFile has objects that this machine's kernel may not support.
const rareFile = `
table ip weft {
	secmark ssh { "system_u:object_r:ssh_server_packet_t:s0" }
	ct helper voip { type "sip" protocol udp; }
	flowtable fast { hook ingress priority filter + 5; devices = { lo }
		counter; flags offload; }
	flowtable several { hook ingress priority -7; devices = { eth0, veth1 }
	}
	flowtable plain { }
}
table netdev weft {
	chain hard { type filter hook ingress device lo priority 7; flags offload; policy drop;
	}
}
`

// withVeth returns a namespace with a device for chains.
func withVeth(t testing.TB) *nfttest.NS {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	ns.Run(t, "ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1")
	return ns
}

// listedRuleset returns nft's listing without the owners of tables.
func listedRuleset(t testing.TB, ns *nfttest.NS) string {
	t.Helper()
	return regexp.MustCompile(`(?m)^\tflags owner.*\n+| # progname.*$`).ReplaceAllString(ns.Run(t, "nft", "list", "ruleset"), "")
}

// TestObjectsAsNft commits objects. nft must list them like its own, and Dump must return
// them as they were declared.
func TestObjectsAsNft(t *testing.T) {
	ours, theirs := withVeth(t), withVeth(t)
	if _, err := theirs.Output(objectsFile, "nft", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c := open(t, ours, Config{})
	ops := opsOf(objectsFile)
	commit(t, c, ops...)
	if got, want := listedRuleset(t, ours), listedRuleset(t, theirs); got != want {
		t.Errorf("nft lists\n%s\nwant\n%s", got, want)
	}
	checkDump(t, c, ops)
	var remove []Op
	for _, op := range ops {
		switch op := op.(type) {
		case AddObject:
			remove = append(remove, DeleteObject{Table: op.Table, Ref: op.Object.Ref()})
		case AddChain:
			remove = append(remove, DeleteChain{Table: op.Table, Name: op.Chain.Name})
		}
	}
	commit(t, c, remove...)
	dumped := nfttest.Must(c.Dump())
	for _, table := range dumped {
		if len(table.Objects)+len(table.Chains) > 0 {
			t.Errorf("still there: %+v", table)
		}
	}
}

// checkDump compares a dump with the committed ops.
func checkDump(t *testing.T, c *Conn, ops []Op) {
	t.Helper()
	dumped := nfttest.Must(c.Dump())
	tables := map[nft.TableID]*Table{}
	for i := range dumped {
		tables[dumped[i].ID] = &dumped[i]
	}
	for _, op := range ops {
		switch op := op.(type) {
		case AddObject:
			i := slices.IndexFunc(tables[op.Table].Objects, func(o *object.Object) bool { return o.Ref() == op.Object.Ref() })
			if i < 0 || !tables[op.Table].Objects[i].Same(op.Object) || tables[op.Table].Objects[i].Text != op.Object.Text {
				t.Errorf("%s: dumped among %+v", Describe(op), tables[op.Table].Objects)
			}
		case AddChain:
			i := slices.IndexFunc(tables[op.Table].Chains, func(c Chain) bool { return c.Decl.Name == op.Chain.Name })
			if i < 0 || !reflect.DeepEqual(tables[op.Table].Chains[i].Decl, op.Chain) {
				t.Errorf("%s: dumped as %+v", Describe(op), tables[op.Table].Chains)
			}
		}
	}
}

// TestObjectErrors commits ops that the kernel or the encoder rejects.
func TestObjectErrors(t *testing.T) {
	ns := withVeth(t)
	c := open(t, ns, Config{})
	id := testTable()
	counter := nfttest.Must(object.Compile(id.Family, &nft.Object{Kind: nft.ObjectCounter, Name: "web"}))
	commit(t, c, AddTable{Table: id}, AddObject{Table: id, Object: counter})
	if _, err := c.Commit([]Op{AddObject{Table: id, Object: counter}}); err == nil {
		t.Error("the object can be created twice")
	}
	if _, err := c.Commit([]Op{DeleteObject{Table: id, Ref: object.Ref{Kind: nft.ObjectQuota, Name: "web"}}}); err == nil {
		t.Error("an object of another kind can be deleted")
	}
	for _, op := range []Op{DeleteObject{Table: id}, AddObject{Table: id, Object: &object.Object{}}} {
		if _, err := c.Commit([]Op{op}); err == nil {
			t.Errorf("%s was accepted", op)
		}
	}
}

// TestDormantTable checks that a dormant table stays dormant when another connection adopts
// it.
func TestDormantTable(t *testing.T) {
	ns := withVeth(t)
	id := nft.TableID{Family: nft.FamilyInet, Name: "weft"}
	c := open(t, ns, Config{})
	commit(t, c, opsOf(`table inet weft { flags dormant; chain in { type filter hook input priority 0; policy drop; }; }`)...)
	contains(t, ns.Run(t, "nft", "list", "ruleset"), "dormant")
	nfttest.NoError(t, c.Close())
	c = open(t, ns, Config{})
	dumped := nfttest.Must(c.Adopt())
	if len(dumped) != 1 || !dumped[0].Dormant || !dumped[0].Owned {
		t.Errorf("adopted %+v", dumped)
	}
	commit(t, c, DeleteTable{Table: id}, AddTable{Table: id})
	if dumped = nfttest.Must(c.Dump()); len(dumped) != 1 || dumped[0].Dormant {
		t.Errorf("awake: %+v", dumped)
	}
}

// TestObjectBytesAsNft compares the messages with those that nft sends.
func TestObjectBytesAsNft(t *testing.T) {
	ns := withVeth(t)
	for _, file := range []string{objectsFile, rareFile} {
		// The kernel rejects features that it lacks after nft has sent the bytes.
		text, err := ns.Output(file, "nft", "--debug=mnl", "-c", "-f", "-")
		if err != nil {
			text = err.Error() + text
		}
		want := sentByNft(text)
		batch := nfttest.Must(Encode(opsOf(file)))
		got := sentByUs(batch)
		if len(got) == 0 || len(want) == 0 {
			t.Fatalf("%d messages, want %d:\n%s", len(got), len(want), text)
		}
		for name, attributes := range got {
			if !reflect.DeepEqual(attributes, want[name]) {
				t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(attributes, "\n"), strings.Join(want[name], "\n"))
			}
		}
	}
}

// compared are the messages whose bytes are compared.
var compared = []uint16{unix.NFT_MSG_NEWOBJ, unix.NFT_MSG_NEWFLOWTABLE, unix.NFT_MSG_NEWCHAIN}

// sentByUs returns the attributes of the messages of a batch by the names of the added
// objects.
func sentByUs(batch []byte) map[string][]string {
	out := map[string][]string{}
	for {
		h, payload, rest, ok := nextMessage(batch)
		if !ok {
			return out
		}
		batch = rest
		if typ := h.typ & 0xff; h.typ>>8 == unix.NFNL_SUBSYS_NFTABLES && slices.Contains(compared, typ) {
			addMessage(out, int(typ), flatten(payload[genLen:]))
		}
	}
}

// addMessage adds a message under the number of its type and the name in it.
func addMessage(out map[string][]string, typ int, attributes []string) {
	if len(attributes) > 1 {
		// Devices are in another order, which has no effect.
		slices.Sort(attributes[2:])
		out[fmt.Sprintf("%d %s", typ, attributes[1])] = attributes
	}
}

// flatten returns attributes as "TYPE LENGTH HEX". The attributes in a nested one follow
// it.
func flatten(b []byte) []string {
	var out []string
	for len(b) >= attr.HeaderLen {
		n := int(binary.NativeEndian.Uint16(b))
		typ := binary.NativeEndian.Uint16(b[2:])
		value := b[attr.HeaderLen:n]
		if typ&unix.NLA_F_NESTED != 0 {
			out = append(out, fmt.Sprintf("%d %d ", typ&0x3fff, n))
			out = append(out, flatten(value)...)
		} else {
			padded := append(slices.Clone(value), make([]byte, (4-len(value)%4)%4)...)
			out = append(out, fmt.Sprintf("%d %d %s", typ, n, hex.EncodeToString(padded)))
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return out
}

// sentByNft is sentByUs for the output of nft.
func sentByNft(text string) map[string][]string {
	out := map[string][]string{}
	for _, m := range nfttest.ParseMessages(text) {
		if slices.Contains(compared, m.Type) {
			addMessage(out, int(m.Type), flatten(m.Attrs))
		}
	}
	return out
}
