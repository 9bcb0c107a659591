package expr

import (
	"golang.org/x/sys/unix"
)

// NAT flags (linux/netfilter/nf_nat.h).
const (
	NatSpecified   = unix.NF_NAT_RANGE_PROTO_SPECIFIED
	NatRandom      = unix.NF_NAT_RANGE_PROTO_RANDOM
	NatPersistent  = unix.NF_NAT_RANGE_PERSISTENT
	NatFullyRandom = unix.NF_NAT_RANGE_PROTO_RANDOM_FULLY
	NatNetmap      = unix.NF_NAT_RANGE_NETMAP
)
