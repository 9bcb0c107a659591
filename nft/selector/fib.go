package selector

// FIBResults are the results of fib by enum nft_fib_result, FIBInputs its inputs by the
// bits of enum nft_fib_flags (linux/netfilter/nf_tables.h).
var (
	FIBResults = [...]string{1: "oif", 2: "oifname", 3: "type"}
	FIBInputs  = [...]string{"saddr", "daddr", "mark", "iif", "oif"}
)
