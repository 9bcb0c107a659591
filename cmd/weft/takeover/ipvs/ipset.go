package ipvs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// sets are kube-proxy's, without KUBE-. The value means that the members are ends of virtual servers.
// Other programs' names begin with KUBE- too.
var sets = map[string]bool{
	"LOOP-BACK": false, "CLUSTER-IP": true, "EXTERNAL-IP": true, "EXTERNAL-IP-LOCAL": true, "LOAD-BALANCER": true,
	"LOAD-BALANCER-LOCAL": false, "LOAD-BALANCER-FW": false, "LOAD-BALANCER-SOURCE-IP": false, "LOAD-BALANCER-SOURCE-CIDR": false,
	"NODE-PORT-TCP": true, "NODE-PORT-LOCAL-TCP": false, "NODE-PORT-UDP": true, "NODE-PORT-LOCAL-UDP": false,
	"NODE-PORT-SCTP-HASH": true, "NODE-PORT-LOCAL-SCTP-HASH": false, "HEALTH-CHECK-NODE-PORT": false, "IPVS-IPS": true,
}

// maxSetName is IPSET_MAXNAMELEN without its zero.
const maxSetName = 31

// Names are cut for IPv6.
func kubeProxySets() map[string]bool {
	names := make(map[string]bool, 2*len(sets))
	for s, ends := range sets {
		six := "KUBE-6-" + s
		names["KUBE-"+s], names[six[:min(len(six), maxSetName)]] = ends, ends
	}
	return names
}

// listSets returns kube-proxy's sets. A kernel without ipset has none; asking it would load the module.
func listSets() (map[string][]end, error) {
	if _, err := os.Stat("/sys/module/ip_set"); err != nil {
		return nil, nil //nolint:nilerr // there is no ipset
	}
	found := make(map[string][]end)
	for name, ends := range kubeProxySets() {
		answers, err := askIPSet(nl.IPSET_CMD_LIST, name)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		found[name] = nil
		for i := 0; ends && i < len(answers) && err == nil; i++ {
			var members []end
			// The members of a set of ports have no protocol; its name has.
			members, err = decodeMembers(answers[i], protocols[name[strings.LastIndexByte(name, '-')+1:]])
			found[name] = append(found[name], members...)
		}
		if err != nil {
			return nil, fmt.Errorf("list set %s of ipset: %w", name, err)
		}
	}
	return found, nil
}

func askIPSet(cmd int, name string) ([][]byte, error) {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_IPSET<<8|cmd, nl.GetIpsetFlags(cmd))
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_NETLINK, Version: nl.NFNETLINK_V0})
	req.AddData(nl.NewRtAttr(nl.IPSET_ATTR_PROTOCOL, nl.Uint8Attr(nl.IPSET_PROTOCOL)))
	req.AddData(nl.NewRtAttr(nl.IPSET_ATTR_SETNAME, nl.ZeroTerminated(name)))
	return req.Execute(unix.NETLINK_NETFILTER, 0)
}

func decodeMembers(msg []byte, protocol uint8) (out []end, err error) {
	each := func(b []byte, f func(kind uint16, data []byte)) {
		d, derr := netlink.NewAttributeDecoder(b)
		for derr == nil && d.Next() {
			f(d.Type(), d.Bytes())
		}
		if derr == nil {
			derr = d.Err()
		}
		err = errors.Join(err, derr)
	}
	each(msg[min(len(msg), nl.SizeofNfgenmsg):], func(kind uint16, data []byte) {
		if kind != nl.IPSET_ATTR_ADT {
			return
		}
		each(data, func(_ uint16, data []byte) {
			m := end{protocol: protocol}
			each(data, func(kind uint16, data []byte) {
				switch {
				case kind == nl.IPSET_ATTR_IP:
					each(data, func(_ uint16, addr []byte) { m.addr, _ = netip.AddrFromSlice(addr) })
				case kind == nl.IPSET_ATTR_PORT && len(data) == 2:
					m.port = binary.BigEndian.Uint16(data)
				case kind == nl.IPSET_ATTR_PROTO && len(data) == 1:
					m.protocol = data[0]
				}
			})
			out = append(out, m)
		})
	})
	return out, err
}
