// Package datatype has the basic datatypes of nft, such as ipv4_addr: their numbers, widths,
// byte orders and names.
//
// The text of one constant goes in, and the bytes that the kernel compares come out
// ([Type.Parse]), or the other way round ([Type.Format]). [TimeUnits] and [ByteUnits] are
// the units of limits and quotas. The package knows only single constants. Concatenations,
// ranges and prefixes are composed by package compile.
//
// Read type.go first, then basic.go, which lists the types. The numbers are those that nft
// 1.0.6 puts into NFTA_SET_KEY_TYPE. The names, symbols and output formats are those of
// `nft describe` and `nft list`.
//
// The package does not read the system, so that a rule means the same on every machine.
// Names of services, protocols, users and groups come from compiled-in tables: those of
// Debian 12, and only the users and groups that every Debian system has. Names that depend
// on the machine must be given as numbers: other users, indices of interfaces (except lo),
// routing realms, marks and labels of connections, cgroup paths. Hours and dates are in
// UTC. nft(8) uses its time zone instead, which is the same if TZ is UTC.
//
// # Errors
//
// Parse returns errors that name the datatype, the text and the constants that are
// possible. Callers add positions.
//
// # Concurrency
//
// Types are read-only tables. Everything is safe for concurrent use.
package datatype
