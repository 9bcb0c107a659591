package ipvs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestSetsOfKernel lists and destroys sets made in the shape of kube-proxy's, and leaves another program's.
func TestSetsOfKernel(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces)
	nfttest.NoError(t, nfttest.New(t).Do(func() error {
		var errs []error
		add := func(name, kind string, options netlink.IpsetCreateOptions, entries ...*netlink.IPSetEntry) {
			err := netlink.IpsetCreate(name, kind, options)
			for _, e := range entries {
				err = errors.Join(err, netlink.IpsetAdd(name, e))
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("make set %s: %w", name, err))
			}
		}
		http := uint16(80)
		udp := uint8(unix.IPPROTO_UDP)
		six := netip.MustParseAddr("fd00:10:96::10")
		add("KUBE-CLUSTER-IP", "hash:ip,port", netlink.IpsetCreateOptions{}, &netlink.IPSetEntry{IP: webAddr.AsSlice(), Port: &http}, &netlink.IPSetEntry{IP: webAddr.AsSlice(), Port: &http, Protocol: &udp})
		add("KUBE-6-IPVS-IPS", "hash:ip", netlink.IpsetCreateOptions{Family: unix.AF_INET6}, &netlink.IPSetEntry{IP: six.AsSlice()})
		add("KUBE-NODE-PORT-UDP", "bitmap:port", netlink.IpsetCreateOptions{PortTo: 65535, Revision: 3})
		errs = append(errs, addPort("KUBE-NODE-PORT-UDP", 30000))
		add("KUBE-LOOP-BACK", "hash:ip,port,ip", netlink.IpsetCreateOptions{})
		add("KUBE-SRC-ABCDEF", "hash:ip", netlink.IpsetCreateOptions{})

		found, err := listSets()
		if err := errors.Join(append(errs, err)...); err != nil {
			return err
		}
		for name, want := range map[string][]end{
			"KUBE-CLUSTER-IP": {{unix.IPPROTO_TCP, webAddr, 80}, {unix.IPPROTO_UDP, webAddr, 80}}, "KUBE-6-IPVS-IPS": {{addr: six}},
			"KUBE-NODE-PORT-UDP": {{protocol: unix.IPPROTO_UDP, port: 30000}}, "KUBE-LOOP-BACK": nil,
		} {
			got, ok := found[name]
			slices.SortFunc(got, func(a, b end) int { return int(a.protocol) - int(b.protocol) })
			if !ok || !slices.Equal(got, want) {
				t.Errorf("%s has %v, want %v", name, got, want)
			}
		}
		if len(found) != 4 {
			t.Errorf("found %v", found)
		}
		l := decide(nil, nil, found)
		l.host = kernel{}
		for range 2 { // a missing set is not an error
			if _, err := l.DestroySets(); err != nil {
				t.Error(err)
			}
		}
		if left, err := netlink.IpsetListAll(); err != nil || len(left) != 1 || left[0].SetName != "KUBE-SRC-ABCDEF" {
			t.Errorf("left are %v, %v", left, err)
		}
		return nil
	}))
}

// addPort adds a member to a set of ports, which the library cannot.
func addPort(name string, port uint16) error {
	data := nl.NewRtAttr(nl.IPSET_ATTR_DATA|unix.NLA_F_NESTED, nil)
	data.AddRtAttr(nl.IPSET_ATTR_PORT|unix.NLA_F_NET_BYTEORDER, binary.BigEndian.AppendUint16(nil, port))
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_IPSET<<8|nl.IPSET_CMD_ADD, nl.GetIpsetFlags(nl.IPSET_CMD_ADD))
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_NETLINK, Version: nl.NFNETLINK_V0})
	for _, a := range []*nl.RtAttr{nl.NewRtAttr(nl.IPSET_ATTR_PROTOCOL, nl.Uint8Attr(nl.IPSET_PROTOCOL)), nl.NewRtAttr(nl.IPSET_ATTR_SETNAME, nl.ZeroTerminated(name)), data} {
		req.AddData(a)
	}
	_, err := req.Execute(unix.NETLINK_NETFILTER, 0)
	return err
}

// TestDeviceOfKernel removes an address and the device. A pair of devices stands in for the dummy device.
func TestDeviceOfKernel(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces)
	nfttest.NoError(t, nfttest.New(t).Do(func() error {
		if _, exists, err := deviceAddresses(); exists || err != nil {
			t.Errorf("the device exists: %v", err)
		}
		pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: Device}, PeerName: "peer0"}
		errs := []error{netlink.LinkAdd(pair)}
		for _, a := range []netip.Addr{webAddr, sixAddr} {
			errs = append(errs, netlink.AddrAdd(pair, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}}))
		}
		l, err := Find(writeProc(t, nil))
		if err := errors.Join(append(errs, err)...); err != nil {
			return err
		}
		if !slices.Equal(l.Addresses, []netip.Addr{webAddr, sixAddr}) || !l.device {
			t.Errorf("found %+v", l)
		}
		for range 2 {
			if err := (kernel{}).deleteAddress(webAddr); err != nil {
				t.Error(err)
			}
		}
		removed, waiting, err := l.Release(t.Context(), false)
		if err != nil || waiting != "" || !slices.Equal(removed, []string{"2 addresses of kube-ipvs0", "device kube-ipvs0"}) {
			t.Errorf("removed %q, %q, %v", removed, waiting, err)
		}
		if _, exists, err := deviceAddresses(); exists || err != nil {
			t.Errorf("the device exists: %v", err)
		}
		return nil
	}))
}
