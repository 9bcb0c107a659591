// Package userdata encodes and decodes the userdata that nft(8) and weft store with tables, chains, rules,
// sets, elements and objects in the kernel.
//
// It has comments and weft's own records: the mark of a table created by weft, and the fingerprint and
// owner of a rule. Records are one byte type, one byte length and a value, as in libnftnl's udata.h.
// Package set writes the userdata of sets, and compile the userdata of rules. Read userdata.go, the only
// file.
//
// The package exists because the Get function of github.com/google/nftables/userdata panics on truncated
// input (TestLibraryPanics), and other programs can store any bytes in the kernel.
//
// # Errors
//
// Parse functions wrap ErrMalformed if userdata ends within a record, or a known record has the wrong form.
// The functions that append comments return the errors of CheckComment.
//
// # Concurrency
//
// Functions keep no state.
package userdata
