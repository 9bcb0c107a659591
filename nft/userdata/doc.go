// Package userdata encodes and decodes the userdata that nft(8) and weft store in the kernel.
//
// It has comments and weft's own records: the mark of a table created by weft, and the fingerprint
// and owner of a rule. Records are one byte type, one byte length and a value, as in libnftnl's
// udata.h. Other programs can store any bytes; github.com/google/nftables/userdata panics on
// truncated input (TestLibraryPanics).
//
// # Errors
//
// Parse functions wrap ErrMalformed if userdata ends within a record, or a known record has the
// wrong form.
//
// # Concurrency
//
// Functions keep no state.
package userdata
