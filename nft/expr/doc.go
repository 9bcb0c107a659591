// Package expr has the expressions of nf_tables as values: those of
// github.com/google/nftables, wrapped in [Library], and one type in a file of
// its own for each that the library lacks or marshals differently from nft(8).
package expr
