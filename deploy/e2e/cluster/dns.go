package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
)

// ClusterDomain is the domain of Services.
const ClusterDomain = "cluster.local"

// DNSAddresses are the ClusterIPs of CoreDNS.
func DNSAddresses() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:10:96::a")}
}

//go:embed coredns.yaml
var coreDNS []byte

// CreateDNS creates the objects of CoreDNS. Its Pods need nodes.
func (c *Cluster) CreateDNS(ctx context.Context) error {
	if err := c.CreateObjects(ctx, coreDNS); err != nil {
		return fmt.Errorf("create CoreDNS: %w", err)
	}
	return nil
}
