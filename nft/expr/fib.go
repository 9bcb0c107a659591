package expr

import (
	"strings"

	"golang.org/x/sys/unix"
)

// enum nft_fib_result, and bits of enum nft_fib_flags (linux/netfilter/nf_tables.h).
var (
	FibResults = []string{1: "oif", 2: "oifname", 3: "type"}
	FibInputs  = []string{"saddr", "daddr", "mark", "iif", "oif"}
)

// Fib looks up an address in the routing table. google/nftables has a field for each bit of Flags
// and for each Result.
type Fib struct {
	Register uint32
	// NFTA_FIB_F_* and NFT_FIB_RESULT_*
	Flags, Result uint32
}

func (e *Fib) table(t *table) {
	t.name, t.format = "fib", "fib %[2]s %[3]s => reg %[1]d"
	if e.Flags&unix.NFTA_FIB_F_PRESENT != 0 {
		t.format = "fib %[2]s %[3]s present => reg %[1]d"
	}
	t.add(unix.NFTA_FIB_DREG, &e.Register)
	t.addWord(unix.NFTA_FIB_FLAGS, &e.Flags, func(flags uint32) string { return strings.Join(Words(flags, FibInputs), " . ") })
	t.addWord(unix.NFTA_FIB_RESULT, &e.Result, func(result uint32) string { return wordAt(result, FibResults...) })
}
