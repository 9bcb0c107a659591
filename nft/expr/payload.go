package expr

import "golang.org/x/sys/unix"

// PayloadWrite changes a packet. google/nftables sends the flag of the pseudo header only with a
// checksum of the changed header.
type PayloadWrite struct {
	Source uint32
	// In bytes; Base is NFT_PAYLOAD_*_HEADER.
	Base, Offset, Len uint32
	// enum nft_payload_csum_types; the offset is in the header
	CsumKind, CsumOffset uint32
	// also the transport checksum
	Pseudo bool
}

func (e *PayloadWrite) table(t *table) {
	t.name = "payload"
	t.format = "payload write reg %[1]d => %[4]db @ %[2]s header + %[3]d csum_type %[5]d csum_off %[6]d csum_flags 0x%[7]x"
	t.add(unix.NFTA_PAYLOAD_SREG, &e.Source)
	t.addWord(unix.NFTA_PAYLOAD_BASE, &e.Base, payloadBase)
	t.add(unix.NFTA_PAYLOAD_OFFSET, &e.Offset)
	t.add(unix.NFTA_PAYLOAD_LEN, &e.Len)
	t.addIf(e.CsumKind != 0, unix.NFTA_PAYLOAD_CSUM_TYPE, &e.CsumKind, "")
	t.addIf(e.CsumKind != 0, unix.NFTA_PAYLOAD_CSUM_OFFSET, &e.CsumOffset, "")
	t.addIf(e.Pseudo, unix.NFTA_PAYLOAD_CSUM_FLAGS, &e.Pseudo, "") // NFT_PAYLOAD_L4CSUM_PSEUDOHDR
}
