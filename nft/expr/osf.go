package expr

// OSF loads the name of the sender's operating system. google/nftables does not have it.
type OSF struct {
	Register uint32
	// 0 for equality, OSFTTLLess or OSFTTLNoCheck
	TTL uint8
	// Version adds the version to the name.
	Version bool
}

// linux/netfilter/nfnetlink_osf.h
const (
	OSFTTLLess    = 1
	OSFTTLNoCheck = 2
)

const (
	nftaOSFDreg  = 1
	nftaOSFTTL   = 2
	nftaOSFFlags = 3 // NFT_OSF_F_VERSION
)

func (e *OSF) table(t *table) {
	t.name, t.format = "osf", "osf dreg %[1]d"
	t.add(nftaOSFDreg, &e.Register)
	t.add(nftaOSFTTL, &e.TTL)
	t.addIf(e.Version, nftaOSFFlags, &e.Version, "")
}
