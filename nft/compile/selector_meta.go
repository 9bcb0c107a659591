package compile

import (
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
)

// metaKey is a key of the meta expression.
type metaKey struct {
	name string
	key  expr.MetaKey
	// dump is libnftnl's name where it is another.
	dump  string
	typ   *datatype.Type
	bits  uint32
	order datatype.Order
	// layer is that of the protocol that the key names; layerNone for others.
	layer layer
	// settable keys can be assigned to.
	settable bool
}

// metaSelectors are the keys of this vocabulary (linux/netfilter/nf_tables.h enum
// nft_meta_keys) with the types that nft gives them.
var metaSelectors = [...]metaKey{
	{name: "length", key: unix.NFT_META_LEN, dump: "len", typ: datatype.Integer, bits: 32, order: datatype.HostEndian},
	{name: "protocol", key: unix.NFT_META_PROTOCOL, typ: datatype.EtherType, bits: 16, order: datatype.BigEndian, layer: layerNetwork},
	{name: "nfproto", key: unix.NFT_META_NFPROTO, typ: datatype.NFProto, bits: 8, order: datatype.HostEndian, layer: layerNetwork},
	{name: "l4proto", key: unix.NFT_META_L4PROTO, typ: datatype.InetProto, bits: 8, order: datatype.HostEndian, layer: layerTransport},
	{name: "mark", key: unix.NFT_META_MARK, typ: datatype.Mark, bits: 32, order: datatype.HostEndian, settable: true},
	{name: "iif", key: unix.NFT_META_IIF, typ: datatype.IfIndex, bits: 32, order: datatype.HostEndian},
	{name: "iifname", key: unix.NFT_META_IIFNAME, typ: datatype.IfName, bits: 128, order: datatype.HostEndian},
	{name: "oif", key: unix.NFT_META_OIF, typ: datatype.IfIndex, bits: 32, order: datatype.HostEndian},
	{name: "oifname", key: unix.NFT_META_OIFNAME, typ: datatype.IfName, bits: 128, order: datatype.HostEndian},
	{name: "skuid", key: unix.NFT_META_SKUID, typ: datatype.UID, bits: 32, order: datatype.HostEndian},
	{name: "skgid", key: unix.NFT_META_SKGID, typ: datatype.GID, bits: 32, order: datatype.HostEndian},
	{name: "pkttype", key: unix.NFT_META_PKTTYPE, typ: datatype.PktType, bits: 8, order: datatype.HostEndian, settable: true},
}

// metaByName returns a meta key, or nil.
func metaByName(name string) *metaKey {
	for i := range metaSelectors {
		if metaSelectors[i].name == name {
			return &metaSelectors[i]
		}
	}
	return nil
}

// metaByKey returns libnftnl's name of a kernel key.
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
