// Package userdata encodes and decodes the userdata that nft(8) and weft store with
// tables, chains, rules, sets, elements and objects in the kernel.
//
// What comes in is a comment, and weft's own records: the mark of a table that weft
// created, and the fingerprint and owner of a rule. What goes out are records of one byte
// type, one byte length and a value, as in libnftnl's udata.h. Package set writes the
// userdata of sets, and compile that of rules. Read userdata.go, the only file.
//
// The package exists because the Get function of
// github.com/google/nftables/userdata panics on truncated input (TestLibraryPanics), and
// the kernel stores whatever another program has written.
//
// # Errors
//
// Userdata that ends within a record, and a known record of the wrong form, are
// ErrMalformed, which the Parse functions wrap. The functions that append comments return
// the errors of CheckComment.
//
// # Concurrency
//
// Functions keep no state.
package userdata
