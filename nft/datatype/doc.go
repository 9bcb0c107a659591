// Package datatype holds nft's basic datatypes: their numbers, widths, byte
// orders and names, and the conversion of one constant between nft's text and
// the bytes that the kernel compares.
//
// The numbers are those that nft 1.0.6 puts into NFTA_SET_KEY_TYPE, the
// names, symbols and output formats those of `nft describe` and `nft list`.
//
// Nothing here reads the system: service and protocol names come from
// compiled-in tables (those of Debian 12), and names whose meaning depends on
// the machine (users, interfaces by index but lo, routing realms, cgroup
// paths) must be given as numbers. Hours and dates are UTC.
//
// The package knows single constants alone; concatenations, ranges and
// prefixes are put together by package compile.
//
// # Concurrency
//
// Types are read-only tables; everything is safe for concurrent use.
//
// # Errors
//
// Parse returns errors that name the datatype, what was found and what was
// expected. Callers add positions.
package datatype
