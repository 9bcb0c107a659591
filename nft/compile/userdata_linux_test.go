package compile

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	google "github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
	"github.com/weft-proxy/weft/nft/userdata"
)

// TestUserDataIsListed writes objects with our userdata into the kernel and
// has nft list them: it must print the comments, and skip weft's records.
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
	name := attr.AppendString(nil, 1, "t") // NFTA_*_TABLE
	counter, err := expr.Encode([]expr.Expr{expr.Library{Any: &google.Counter{}}})
	if err != nil {
		t.Fatal(err)
	}
	id := uint32(1)
	setAttributes, err := attr.Fields{
		attr.Always(unix.NFTA_SET_NAME, &set.Name), attr.Always(unix.NFTA_SET_FLAGS, &set.Flags),
		attr.Always(unix.NFTA_SET_KEY_TYPE, &set.Key.ID), attr.Always(unix.NFTA_SET_KEY_LEN, &set.Key.Len),
		attr.Always(unix.NFTA_SET_DATA_TYPE, &set.Data.ID), attr.Always(unix.NFTA_SET_DATA_LEN, &set.Data.Len),
		attr.Always(unix.NFTA_SET_ID, &id), attr.Always(unix.NFTA_SET_DESC, attr.Fields{attr.Always(unix.NFTA_SET_DESC_SIZE, &set.Size)}),
		attr.Always(unix.NFTA_SET_USERDATA, &set.UserData),
	}.Append(slices.Clone(name))
	if err != nil {
		t.Fatal(err)
	}
	b := attr.AppendString(slices.Clone(name), unix.NFTA_RULE_CHAIN, "c")
	b = attr.AppendBytes(b, unix.NFTA_RULE_EXPRESSIONS|unix.NLA_F_NESTED, counter.Bytes)
	writeBatch(t, ns, []request{
		{unix.NFT_MSG_NEWTABLE, attr.AppendBytes(slices.Clone(name), 6 /* NFTA_TABLE_USERDATA */, table)},
		{unix.NFT_MSG_NEWCHAIN, attr.AppendBytes(attr.AppendString(slices.Clone(name), unix.NFTA_CHAIN_NAME, "c"), 12 /* NFTA_CHAIN_USERDATA */, chain)},
		{unix.NFT_MSG_NEWRULE, attr.AppendBytes(b, unix.NFTA_RULE_USERDATA, rule)},
		{unix.NFT_MSG_NEWSET, setAttributes},
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
	attrs []byte
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
			Data: append([]byte{byte(nft.FamilyIP), 0, 0, 0}, r.attrs...),
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
