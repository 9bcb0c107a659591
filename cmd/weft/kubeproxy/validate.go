package kubeproxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kube-proxy/config/v1alpha1"

	"github.com/weft-proxy/weft/frontends/source/network"
)

type violation struct {
	path string
	got  string
	want string
}

type checker struct{ found []violation }

func (k *checker) check(ok bool, path string, got any, want string) {
	if !ok {
		text := fmt.Sprint(got)
		if s, isText := got.(string); isText {
			text = fmt.Sprintf("%q", s)
		}
		k.found = append(k.found, violation{path, text, want})
	}
}

var versionPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// validate applies kube-proxy's rules. c has defaults.
func validate(c *v1alpha1.KubeProxyConfiguration) []violation {
	var k checker
	modes := []string{"", ModeNFTables, ModeIPTables, ModeIPVS}
	k.check(slices.Contains(modes, string(c.Mode)), "mode", string(c.Mode), "nftables (or iptables, ipvs or nothing, which mean the same in weft)")
	k.detect(c)
	k.addresses(c)
	k.numbers(c)
	v := c.ShowHiddenMetricsForVersion
	k.check(v == "" || versionPattern.MatchString(v), "showHiddenMetricsForVersion", v, "a version such as 1.35")
	k.check(c.Logging.Format == "text" || c.Logging.Format == "json", "logging.format", c.Logging.Format, "text or json")
	return k.found
}

func (k *checker) numbers(c *v1alpha1.KubeProxyConfiguration) {
	for _, n := range []struct {
		path        string
		got         int32
		least, most int32
	}{
		{"nftables.masqueradeBit", *c.NFTables.MasqueradeBit, 0, 31},
		{"iptables.masqueradeBit", *c.IPTables.MasqueradeBit, 0, 31},
		{"oomScoreAdj", *c.OOMScoreAdj, -1000, 1000},
	} {
		k.check(n.got >= n.least && n.got <= n.most, n.path, n.got, fmt.Sprintf("%d to %d", n.least, n.most))
	}
	least := "at least 0"
	k.check(*c.Conntrack.MaxPerCore >= 0, "conntrack.maxPerCore", *c.Conntrack.MaxPerCore, least)
	k.check(*c.Conntrack.Min >= 0, "conntrack.min", *c.Conntrack.Min, least)
	k.check(c.ClientConnection.Burst >= 0, "clientConnection.burst", c.ClientConnection.Burst, least)
	k.check(c.Conntrack.TCPEstablishedTimeout.Duration >= 0, "conntrack.tcpEstablishedTimeout", c.Conntrack.TCPEstablishedTimeout.Duration, least)
	k.check(c.Conntrack.TCPCloseWaitTimeout.Duration >= 0, "conntrack.tcpCloseWaitTimeout", c.Conntrack.TCPCloseWaitTimeout.Duration, least)
	k.check(c.Conntrack.UDPTimeout.Duration >= 0, "conntrack.udpTimeout", c.Conntrack.UDPTimeout.Duration, least)
	k.check(c.Conntrack.UDPStreamTimeout.Duration >= 0, "conntrack.udpStreamTimeout", c.Conntrack.UDPStreamTimeout.Duration, least)
	k.check(c.ConfigSyncPeriod.Duration > 0, "configSyncPeriod", c.ConfigSyncPeriod.Duration, "more than 0")

	sync, minimum := c.NFTables.SyncPeriod.Duration, c.NFTables.MinSyncPeriod.Duration
	k.check(sync > 0, "nftables.syncPeriod", sync, "more than 0")
	k.check(minimum >= 0, "nftables.minSyncPeriod", minimum, "at least 0, which means no wait")
	k.check(sync <= 0 || minimum <= sync, "nftables.minSyncPeriod", minimum, fmt.Sprintf("at most the syncPeriod, %v", sync))
}

func (k *checker) addresses(c *v1alpha1.KubeProxyConfiguration) {
	k.families("bindAddress", c.BindAddress, "an address", network.ParseAddr)
	for path, address := range map[string]string{"healthzBindAddress": c.HealthzBindAddress, "metricsBindAddress": c.MetricsBindAddress} {
		k.check(address == "" || isAddrPort(address), path, address, "an address, or an address and a port such as 0.0.0.0:10256")
	}
	k.nodePorts(c.NodePortAddresses)
}

const wantPrefix = "an address and a prefix length, such as 10.244.0.0/16"

func (k *checker) detect(c *v1alpha1.KubeProxyConfiguration) {
	switch c.DetectLocalMode {
	case localNodeCIDR:
	case localClusterCIDR:
		k.families("clusterCIDR", c.ClusterCIDR, wantPrefix, func(s string) (netip.Addr, error) {
			p, err := network.ParsePrefix(s)
			return p.Addr(), err
		})
	case localBridge:
		k.check(isInterface(c.DetectLocal.BridgeInterface), "detectLocal.bridgeInterface", c.DetectLocal.BridgeInterface, "the name of an interface, for BridgeInterface")
	case localPrefix:
		k.check(isInterface(c.DetectLocal.InterfaceNamePrefix), "detectLocal.interfaceNamePrefix", c.DetectLocal.InterfaceNamePrefix,
			"a prefix of the names of interfaces, for InterfaceNamePrefix")
	default:
		k.check(false, "detectLocalMode", string(c.DetectLocalMode), strings.Join([]string{localClusterCIDR, localNodeCIDR, localBridge, localPrefix}, ", "))
	}
}

// families checks a list of at most one value of each family.
func (k *checker) families(path, text, want string, parse func(string) (netip.Addr, error)) {
	var six []bool
	for _, s := range splitList(text) {
		a, err := parse(s)
		k.check(err == nil, path, s, want)
		if err == nil {
			six = append(six, a.Is6())
		}
	}
	k.check(len(six) < 2 || len(six) == 2 && six[0] != six[1], path, text, "one, or one of each family")
}

func splitList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// isInterface accepts the name, or a prefix, of an interface.
func isInterface(name string) bool {
	const most = 15
	return name != "" && len(name) <= most && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/:"\*`, r)
	})
}

// withPort returns an invalid address unchanged, for the validation.
func withPort(address string, port int) string {
	if a, err := network.ParseAddr(address); err == nil {
		return net.JoinHostPort(a.String(), strconv.Itoa(port))
	}
	return address
}

func isAddrPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	_, hostErr := network.ParseAddr(host)
	n, portErr := strconv.ParseUint(port, 10, 16)
	return errors.Join(err, hostErr, portErr) == nil && n > 0
}
