package selector

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
)

// not in golang.org/x/sys (enum nft_meta_keys)
const (
	MetaTimeDay  = 31
	MetaTimeHour = 32
)

// MetaKeys are the keys of nft 1.0.6 (enum nft_meta_keys) with nft's types.
var MetaKeys = Keys{
	{Name: "length", Key: unix.NFT_META_LEN, dump: "len", Type: datatype.Integer, Bits: 32, Order: datatype.HostEndian},
	{Name: "protocol", Key: unix.NFT_META_PROTOCOL, Type: datatype.EtherType, Bits: 16, Order: datatype.BigEndian, Layer: LayerNetwork},
	{Name: "nfproto", Key: unix.NFT_META_NFPROTO, Type: datatype.NFProto, Bits: 8, Order: datatype.HostEndian, Layer: LayerNetwork},
	{Name: "l4proto", Key: unix.NFT_META_L4PROTO, Type: datatype.InetProto, Bits: 8, Order: datatype.HostEndian, Layer: LayerTransport},
	{Name: "priority", Key: unix.NFT_META_PRIORITY, Type: datatype.ClassID, Bits: 32, Order: datatype.HostEndian, Settable: true},
	{Name: "mark", Key: unix.NFT_META_MARK, Type: datatype.Mark, Bits: 32, Order: datatype.HostEndian, Settable: true},
	{Name: "iif", Key: unix.NFT_META_IIF, Type: datatype.IfIndex, Bits: 32, Order: datatype.HostEndian},
	{Name: "iiftype", Key: unix.NFT_META_IIFTYPE, Type: datatype.IfType, Bits: 16, Order: datatype.HostEndian},
	{Name: "iifname", Key: unix.NFT_META_IIFNAME, Type: datatype.IfName, Bits: 128, Order: datatype.HostEndian},
	{Name: "oif", Key: unix.NFT_META_OIF, Type: datatype.IfIndex, Bits: 32, Order: datatype.HostEndian},
	{Name: "oifname", Key: unix.NFT_META_OIFNAME, Type: datatype.IfName, Bits: 128, Order: datatype.HostEndian},
	{Name: "oiftype", Key: unix.NFT_META_OIFTYPE, Type: datatype.IfType, Bits: 16, Order: datatype.HostEndian},
	{Name: "skuid", Key: unix.NFT_META_SKUID, Type: datatype.UID, Bits: 32, Order: datatype.HostEndian},
	{Name: "skgid", Key: unix.NFT_META_SKGID, Type: datatype.GID, Bits: 32, Order: datatype.HostEndian},
	{Name: "nftrace", Key: unix.NFT_META_NFTRACE, Type: datatype.Integer, Bits: 1, Order: datatype.HostEndian, Settable: true, Unreadable: true},
	{Name: "rtclassid", Key: unix.NFT_META_RTCLASSID, Type: datatype.Realm, Bits: 32, Order: datatype.HostEndian},
	{Name: "ibrname", alias: "ibriport", Key: unix.NFT_META_BRI_IIFNAME, dump: "bri_iifname", Type: datatype.IfName, Bits: 128, Order: datatype.HostEndian, Bridge: true},
	{Name: "obrname", alias: "obriport", Key: unix.NFT_META_BRI_OIFNAME, dump: "bri_oifname", Type: datatype.IfName, Bits: 128, Order: datatype.HostEndian, Bridge: true},
	{Name: "pkttype", Key: unix.NFT_META_PKTTYPE, Type: datatype.PktType, Bits: 8, Order: datatype.HostEndian, Settable: true},
	{Name: "cpu", Key: unix.NFT_META_CPU, Type: datatype.Integer, Bits: 32, Order: datatype.HostEndian},
	{Name: "iifgroup", Key: unix.NFT_META_IIFGROUP, Type: datatype.DevGroup, Bits: 32, Order: datatype.HostEndian},
	{Name: "oifgroup", Key: unix.NFT_META_OIFGROUP, Type: datatype.DevGroup, Bits: 32, Order: datatype.HostEndian},
	{Name: "cgroup", Key: unix.NFT_META_CGROUP, Type: datatype.Integer, Bits: 32, Order: datatype.HostEndian},
	// any order fits a random number; this one avoids a conversion
	{Name: "random", Key: unix.NFT_META_PRANDOM, dump: "prandom", Type: datatype.Integer, Bits: 32, Order: datatype.BigEndian},
	{Name: "ipsec", alias: "secpath", Key: 25, dump: "secpath", Type: datatype.Boolean, Bits: 8, Order: datatype.HostEndian},
	{Name: "iifkind", Key: 26, Type: datatype.IfName, Bits: 128, Order: datatype.HostEndian},
	{Name: "oifkind", Key: 27, Type: datatype.IfName, Bits: 128, Order: datatype.HostEndian},
	{Name: "ibrpvid", Key: 28, dump: "bri_iifpvid", Type: datatype.Integer, Bits: 16, Order: datatype.HostEndian, Bridge: true},
	{Name: "ibrvproto", Key: 29, dump: "bri_iifvproto", Type: datatype.EtherType, Bits: 16, Order: datatype.BigEndian, Bridge: true},
	{Name: "time", Key: 30, Type: datatype.Date, Bits: 64, Order: datatype.HostEndian},
	{Name: "day", Key: MetaTimeDay, Type: datatype.Day, Bits: 8, Order: datatype.HostEndian},
	{Name: "hour", Key: MetaTimeHour, Type: datatype.Hour, Bits: 32, Order: datatype.HostEndian},
	{Name: "secmark", Key: unix.NFT_META_SECMARK, Type: datatype.Integer, Bits: 32, Order: datatype.HostEndian, Settable: true},
	{Name: "sdif", Key: 33, Type: datatype.IfIndex, Bits: 32, Order: datatype.HostEndian},
	{Name: "sdifname", Key: 34, Type: datatype.IfName, Bits: 128, Order: datatype.HostEndian},
}
