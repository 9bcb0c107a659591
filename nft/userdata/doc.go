// Package userdata encodes and decodes the userdata that nft(8) and weft store with
// tables, chains, rules, sets, elements and objects in the kernel.
//
// What comes in is a comment or weft's own marks; what goes out are records of one
// byte type, one byte length and a value, as in libnftnl's udata.h. Read
// userdata.go, the only file.
//
// The package exists because the Get function of
// github.com/google/nftables/userdata panics on truncated input, and the kernel
// stores whatever another program has written.
//
// # Errors
//
// Userdata that ends within a record is ErrMalformed, wrapped.
//
// # Concurrency
//
// Functions keep no state.
package userdata
