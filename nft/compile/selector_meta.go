package compile

import (
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
)

// metaKey is a key of the meta expression.
type metaKey struct {
	name string
	// alias is an older name that nft takes too.
	alias string
	key   expr.MetaKey
	// dump is libnftnl's name where it is another.
	dump  string
	typ   *datatype.Type
	bits  uint32
	order datatype.Order
	// layer is that of the protocol that the key names; layerNone for others.
	layer layer
	// settable keys can be assigned to; unreadable ones cannot be matched.
	settable, unreadable bool
	// bridge is true for the keys that the kernel has in the bridge family
	// only.
	bridge bool
}

// metaSelectors are the keys of nft 1.0.6 (linux/netfilter/nf_tables.h enum
// nft_meta_keys) with the types that nft gives them.
var metaSelectors = [...]metaKey{
	{name: "length", key: unix.NFT_META_LEN, dump: "len", typ: datatype.Integer, bits: 32, order: datatype.HostEndian},
	{name: "protocol", key: unix.NFT_META_PROTOCOL, typ: datatype.EtherType, bits: 16, order: datatype.BigEndian, layer: layerNetwork},
	{name: "nfproto", key: unix.NFT_META_NFPROTO, typ: datatype.NFProto, bits: 8, order: datatype.HostEndian, layer: layerNetwork},
	{name: "l4proto", key: unix.NFT_META_L4PROTO, typ: datatype.InetProto, bits: 8, order: datatype.HostEndian, layer: layerTransport},
	{name: "priority", key: unix.NFT_META_PRIORITY, typ: datatype.ClassID, bits: 32, order: datatype.HostEndian, settable: true},
	{name: "mark", key: unix.NFT_META_MARK, typ: datatype.Mark, bits: 32, order: datatype.HostEndian, settable: true},
	{name: "iif", key: unix.NFT_META_IIF, typ: datatype.IfIndex, bits: 32, order: datatype.HostEndian},
	{name: "iiftype", key: unix.NFT_META_IIFTYPE, typ: datatype.IfType, bits: 16, order: datatype.HostEndian},
	{name: "iifname", key: unix.NFT_META_IIFNAME, typ: datatype.IfName, bits: 128, order: datatype.HostEndian},
	{name: "oif", key: unix.NFT_META_OIF, typ: datatype.IfIndex, bits: 32, order: datatype.HostEndian},
	{name: "oifname", key: unix.NFT_META_OIFNAME, typ: datatype.IfName, bits: 128, order: datatype.HostEndian},
	{name: "oiftype", key: unix.NFT_META_OIFTYPE, typ: datatype.IfType, bits: 16, order: datatype.HostEndian},
	{name: "skuid", key: unix.NFT_META_SKUID, typ: datatype.UID, bits: 32, order: datatype.HostEndian},
	{name: "skgid", key: unix.NFT_META_SKGID, typ: datatype.GID, bits: 32, order: datatype.HostEndian},
	{name: "nftrace", key: unix.NFT_META_NFTRACE, typ: datatype.Integer, bits: 1, order: datatype.HostEndian, settable: true, unreadable: true},
	{name: "rtclassid", key: unix.NFT_META_RTCLASSID, typ: datatype.Realm, bits: 32, order: datatype.HostEndian},
	{name: "ibrname", alias: "ibriport", key: unix.NFT_META_BRI_IIFNAME, dump: "bri_iifname", typ: datatype.IfName, bits: 128, order: datatype.HostEndian, bridge: true},
	{name: "obrname", alias: "obriport", key: unix.NFT_META_BRI_OIFNAME, dump: "bri_oifname", typ: datatype.IfName, bits: 128, order: datatype.HostEndian, bridge: true},
	{name: "pkttype", key: unix.NFT_META_PKTTYPE, typ: datatype.PktType, bits: 8, order: datatype.HostEndian, settable: true},
	{name: "cpu", key: unix.NFT_META_CPU, typ: datatype.Integer, bits: 32, order: datatype.HostEndian},
	{name: "iifgroup", key: unix.NFT_META_IIFGROUP, typ: datatype.DevGroup, bits: 32, order: datatype.HostEndian},
	{name: "oifgroup", key: unix.NFT_META_OIFGROUP, typ: datatype.DevGroup, bits: 32, order: datatype.HostEndian},
	{name: "cgroup", key: unix.NFT_META_CGROUP, typ: datatype.Integer, bits: 32, order: datatype.HostEndian},
	// Any order does for a random number: with this one nothing is converted.
	{name: "random", key: unix.NFT_META_PRANDOM, dump: "prandom", typ: datatype.Integer, bits: 32, order: datatype.BigEndian},
	{name: "ipsec", alias: "secpath", key: metaSecpath, dump: "secpath", typ: datatype.Boolean, bits: 8, order: datatype.HostEndian},
	{name: "iifkind", key: metaIifKind, typ: datatype.IfName, bits: 128, order: datatype.HostEndian},
	{name: "oifkind", key: metaOifKind, typ: datatype.IfName, bits: 128, order: datatype.HostEndian},
	{name: "ibrpvid", key: metaBriIifPvid, dump: "bri_iifpvid", typ: datatype.Integer, bits: 16, order: datatype.HostEndian, bridge: true},
	{name: "ibrvproto", key: metaBriIifVproto, dump: "bri_iifvproto", typ: datatype.EtherType, bits: 16, order: datatype.BigEndian, bridge: true},
	{name: "time", key: metaTimeNS, typ: datatype.Date, bits: 64, order: datatype.HostEndian},
	{name: "day", key: metaTimeDay, typ: datatype.Day, bits: 8, order: datatype.HostEndian},
	{name: "hour", key: metaTimeHour, typ: datatype.Hour, bits: 32, order: datatype.HostEndian},
	{name: "secmark", key: unix.NFT_META_SECMARK, typ: datatype.Integer, bits: 32, order: datatype.HostEndian, settable: true},
	{name: "sdif", key: metaSdif, typ: datatype.IfIndex, bits: 32, order: datatype.HostEndian},
	{name: "sdifname", key: metaSdifName, typ: datatype.IfName, bits: 128, order: datatype.HostEndian},
}

// The meta keys that golang.org/x/sys has no names for (enum nft_meta_keys).
const (
	metaSecpath      expr.MetaKey = 25
	metaIifKind      expr.MetaKey = 26
	metaOifKind      expr.MetaKey = 27
	metaBriIifPvid   expr.MetaKey = 28
	metaBriIifVproto expr.MetaKey = 29
	metaTimeNS       expr.MetaKey = 30
	metaTimeDay      expr.MetaKey = 31
	metaTimeHour     expr.MetaKey = 32
	metaSdif         expr.MetaKey = 33
	metaSdifName     expr.MetaKey = 34
)

// metaByName returns a meta key, or nil.
func metaByName(name string) *metaKey {
	for i := range metaSelectors {
		if k := &metaSelectors[i]; k.name == name || k.alias == name && name != "" {
			return k
		}
	}
	return nil
}

// metaDumpName returns libnftnl's name of a kernel key.
func metaDumpName(key expr.MetaKey) string {
	for i := range metaSelectors {
		if k := &metaSelectors[i]; k.key == key {
			if k.dump != "" {
				return k.dump
			}
			return k.name
		}
	}
	return "unknown"
}
