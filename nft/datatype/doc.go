// Package datatype has the basic datatypes of nft, such as ipv4_addr: their numbers, widths, byte orders
// and names.
//
// [Type.Parse] converts a constant to the bytes compared by the kernel, and [Type.Format] converts back.
// [TimeUnits] and [ByteUnits] are the units of limits and quotas. Package compile composes concatenations,
// ranges and prefixes.
//
// Read type.go first, then basic.go, which lists the types. The numbers are the NFTA_SET_KEY_TYPE of nft
// 1.0.6. The names, symbols and output formats follow `nft describe` and `nft list`.
//
// The package does not read the system, so a rule means the same on every machine. Names of services,
// protocols, users and groups come from tables of Debian 12, with only the users and groups of every Debian
// system. Other names must be given as numbers: other users, indices of interfaces (except lo), routing
// realms, marks and labels of connections, cgroup paths. Hours and dates are in UTC; nft(8) uses its time
// zone.
//
// # Errors
//
// Errors of Parse name the datatype, the text and the possible constants. Callers add positions.
//
// # Concurrency
//
// Types are read-only tables. The package is safe for concurrent use.
package datatype
