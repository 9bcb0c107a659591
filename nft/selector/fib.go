package selector

// fibResults are enum nft_fib_result, fibInputs the bits of enum
// nft_fib_flags, of linux/netfilter/nf_tables.h.
var (
	FIBResults = [...]string{1: "oif", 2: "oifname", 3: "type"}
	FIBInputs  = [...]string{"saddr", "daddr", "mark", "iif", "oif"}
)
