package selector

import (
	"github.com/weft-proxy/weft/nft/datatype"
)

// SocketKeys are the keys of the socket expression (enum
// nft_socket_keys).
var SocketKeys = [...]HostKey{
	{name: "transparent", Key: 0, dump: "transparent", Type: datatype.Integer, Bits: 8, Order: datatype.HostEndian, Flag: true},
	{name: "mark", Key: 1, dump: "mark", Type: datatype.Mark, Bits: 32, Order: datatype.HostEndian},
	{name: "wildcard", Key: 2, dump: "wildcard", Type: datatype.Integer, Bits: 8, Order: datatype.HostEndian, Flag: true},
	{name: "cgroupv2", Key: 3, dump: "cgroupv2", Type: datatype.CGroupV2, Bits: 64, Order: datatype.HostEndian},
}

// SocketByName returns a key, or nil.
func SocketByName(name string) *HostKey {
	for i := range SocketKeys {
		if SocketKeys[i].name == name {
			return &SocketKeys[i]
		}
	}
	return nil
}
