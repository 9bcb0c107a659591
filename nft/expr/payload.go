package expr

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// PayloadWrite is the kernel's payload expression that changes a packet.
// google/nftables sends the flag of the pseudo header only together with a
// checksum of the header that is changed.
type PayloadWrite struct {
	// Source is the register with the bytes.
	Source uint32
	// Base is NFT_PAYLOAD_*_HEADER; Offset and Len are in bytes.
	Base, Offset, Len uint32
	// CsumKind is how the checksum of the header at CsumOffset is corrected
	// (enum nft_payload_csum_types).
	CsumKind, CsumOffset uint32
	// Pseudo is true if the checksum of the transport header changes too.
	Pseudo bool
}

// table is Expr's.
func (e *PayloadWrite) table() table {
	return table{"payload", []attribute{
		{unix.NFTA_PAYLOAD_SREG, &e.Source, always},
		{unix.NFTA_PAYLOAD_BASE, &e.Base, always},
		{unix.NFTA_PAYLOAD_OFFSET, &e.Offset, always},
		{unix.NFTA_PAYLOAD_LEN, &e.Len, always},
		{unix.NFTA_PAYLOAD_CSUM_TYPE, &e.CsumKind, e.CsumKind != 0},
		{unix.NFTA_PAYLOAD_CSUM_OFFSET, &e.CsumOffset, e.CsumKind != 0},
		{unix.NFTA_PAYLOAD_CSUM_FLAGS, &e.Pseudo, e.Pseudo}, // NFT_PAYLOAD_L4CSUM_PSEUDOHDR
	}}
}

// String is Expr's.
func (e *PayloadWrite) String() string {
	return fmt.Sprintf("payload write reg %d => %db @ %s header + %d csum_type %d csum_off %d csum_flags 0x%x",
		e.Source, e.Len, payloadBase(e.Base), e.Offset, e.CsumKind, e.CsumOffset, flag(e.Pseudo, unix.NFT_PAYLOAD_L4CSUM_PSEUDOHDR))
}

// payloadBase returns libnftnl's name of a payload base (enum
// nft_payload_bases).
func payloadBase(base uint32) string {
	names := [...]string{"link", "network", "transport", "inner"}
	if base < uint32(len(names)) {
		return names[base]
	}
	return "unknown"
}
