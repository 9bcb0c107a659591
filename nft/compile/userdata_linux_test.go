package compile

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
	"github.com/weft-proxy/weft/nft/userdata"
)

// TestUserDataIsListed writes objects with our userdata into the kernel and
// has nft list them: it must print the comments, and skip what is ours.
func TestUserDataIsListed(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	table, err := userdata.Table("a table")
	if err != nil {
		t.Fatal(err)
	}
	chain, err := userdata.AppendComment(nil, "a chain")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("r", userdata.MaxComment)
	rule, err := (&Rule{Comment: long, Fingerprint: userdata.Fingerprint{7}}).UserData(strings.Repeat("o", userdata.MaxOwner))
	if err != nil {
		t.Fatal(err)
	}
	set, err := set.CompileMap(nft.FamilyIP, &nft.Map{
		Name: "m", Comment: "a map", Size: 7,
		TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport",
	})
	if err != nil {
		t.Fatal(err)
	}
	name := netlink.Attribute{Type: 1, Data: []byte("t\x00")} // NFTA_*_TABLE
	writeBatch(t, ns, []request{
		{unix.NFT_MSG_NEWTABLE, []netlink.Attribute{name, {Type: 6 /* NFTA_TABLE_USERDATA */, Data: table}}},
		{unix.NFT_MSG_NEWCHAIN, []netlink.Attribute{
			name, {Type: unix.NFTA_CHAIN_NAME, Data: []byte("c\x00")},
			{Type: 12 /* NFTA_CHAIN_USERDATA */, Data: chain},
		}},
		{unix.NFT_MSG_NEWRULE, []netlink.Attribute{
			name, {Type: unix.NFTA_RULE_CHAIN, Data: []byte("c\x00")},
			{Type: unix.NFTA_RULE_EXPRESSIONS | unix.NLA_F_NESTED, Data: counterExpr(t)},
			{Type: unix.NFTA_RULE_USERDATA, Data: rule},
		}},
		{unix.NFT_MSG_NEWSET, setAttributes(t, name, set)},
	})
	listed := ns.ListRuleset(t)
	for _, want := range []string{
		`comment "a table"`, `comment "a chain"`, `comment "` + long + `"`, `comment "a map"`,
		"typeof ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport",
	} {
		if !strings.Contains(listed, want) {
			t.Errorf("nft does not print %s:\n%s", want, listed)
		}
	}
	if out := ns.Run(t, "nft", "-j", "list", "ruleset"); !json.Valid([]byte(out)) || !strings.Contains(out, long) {
		t.Errorf("nft -j prints %s", out)
	}
}

type request struct {
	msg   uint16
	attrs []netlink.Attribute
}

func u32(typ uint16, v uint32) netlink.Attribute {
	return netlink.Attribute{Type: typ, Data: binary.BigEndian.AppendUint32(nil, v)}
}

func attributes(t *testing.T, attrs ...netlink.Attribute) []byte {
	t.Helper()
	b, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// counterExpr is a rule's list of one counter.
func counterExpr(t *testing.T) []byte {
	t.Helper()
	counter := attributes(t, netlink.Attribute{Type: unix.NFTA_EXPR_NAME, Data: []byte("counter\x00")},
		netlink.Attribute{Type: unix.NFTA_EXPR_DATA | unix.NLA_F_NESTED})
	return attributes(t, netlink.Attribute{Type: unix.NFTA_LIST_ELEM | unix.NLA_F_NESTED, Data: counter})
}

func setAttributes(t *testing.T, table netlink.Attribute, s *set.Set) []netlink.Attribute {
	t.Helper()
	return []netlink.Attribute{
		table, {Type: unix.NFTA_SET_NAME, Data: []byte(s.Name + "\x00")},
		u32(unix.NFTA_SET_FLAGS, s.Flags), u32(unix.NFTA_SET_KEY_TYPE, s.Key.ID), u32(unix.NFTA_SET_KEY_LEN, s.Key.Len),
		u32(unix.NFTA_SET_DATA_TYPE, s.Data.ID), u32(unix.NFTA_SET_DATA_LEN, s.Data.Len), u32(unix.NFTA_SET_ID, 1),
		{Type: unix.NFTA_SET_DESC | unix.NLA_F_NESTED, Data: attributes(t, u32(unix.NFTA_SET_DESC_SIZE, s.Size))},
		{Type: unix.NFTA_SET_USERDATA, Data: s.UserData},
	}
}

// writeBatch commits requests to the ip family.
func writeBatch(t *testing.T, ns *nfttest.NS, requests []request) {
	t.Helper()
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: ns.FD()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	edge := []byte{0, 0, 0, unix.NFNL_SUBSYS_NFTABLES}
	batch := []netlink.Message{{Header: netlink.Header{Type: unix.NFNL_MSG_BATCH_BEGIN, Flags: netlink.Request}, Data: edge}}
	for _, r := range requests {
		batch = append(batch, netlink.Message{
			Header: netlink.Header{
				Type:  netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | r.msg),
				Flags: netlink.Request | netlink.Acknowledge | netlink.Create | netlink.Append,
			},
			Data: append([]byte{byte(nft.FamilyIP), 0, 0, 0}, attributes(t, r.attrs...)...),
		})
	}
	batch = append(batch, netlink.Message{Header: netlink.Header{Type: unix.NFNL_MSG_BATCH_END, Flags: netlink.Request}, Data: edge})
	if _, err := conn.SendMessages(batch); err != nil {
		t.Fatal(err)
	}
	for range requests {
		if _, err := conn.Receive(); err != nil {
			t.Fatal(err)
		}
	}
}
