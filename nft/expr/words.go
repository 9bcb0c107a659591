package expr

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Words returns the words of the set bits, from the lowest.
func Words(flags uint32, words []string) (out []string) {
	for i, w := range words {
		if flags&(1<<i) != 0 && w != "" {
			out = append(out, w)
		}
	}
	return out
}

// Flags is the inverse of Words.
func Flags(given, words []string) (flags uint32) {
	for _, w := range given {
		if i := slices.Index(words, w); i >= 0 {
			flags |= 1 << i
		}
	}
	return flags
}

// Slots is the number of 32-bit registers.
const Slots = 16

// Slot returns the first 32-bit register; Slots and false for the verdict's register and unknown
// numbers (enum nft_registers).
func Slot(register uint32) (slot uint32, ok bool) {
	switch {
	case register >= unix.NFT_REG_1 && register <= unix.NFT_REG_4:
		return 4 * (register - unix.NFT_REG_1), true
	case register >= unix.NFT_REG32_00 && register < unix.NFT_REG32_00+Slots:
		return register - unix.NFT_REG32_00, true
	default:
		return Slots, false
	}
}
