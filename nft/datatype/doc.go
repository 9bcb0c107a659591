// Package datatype has the basic datatypes of nft, such as ipv4_addr: their numbers, widths, byte orders
// and names.
//
// [Type.Parse] converts a constant to the bytes compared by the kernel, and [Type.Format] converts back.
// Read type.go first, then basic.go.
//
// Numbers are the NFTA_SET_KEY_TYPE of nft 1.0.6; names, symbols and formats follow `nft describe` and `nft
// list`. The package does not read the system: names of services, protocols, users and groups come from
// tables of Debian 12, with only the users and groups of every Debian system. Other users, indices of
// interfaces (except lo), routing realms, marks and labels of connections, and cgroups must be numbers.
// Hours and dates are in UTC; nft(8) uses its time zone.
//
// # Errors
//
// Errors of Parse name the datatype, the text and the possible constants, without a position.
//
// # Concurrency
//
// Types are read-only tables.
package datatype
