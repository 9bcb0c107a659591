// Package datatype holds nft's basic datatypes: their numbers, widths, byte
// orders and names, and the conversion of one constant between nft's text and
// the bytes that the kernel compares.
//
// The numbers are those that nft 1.0.6 puts into NFTA_SET_KEY_TYPE, the
// names, symbols and output formats those of `nft describe` and `nft list`.
//
// Nothing here reads the system, so that a rule means the same on every
// machine: names of services, protocols, users and groups come from
// compiled-in tables (those of Debian 12; of users and groups the ones that
// every Debian system has). Names whose meaning depends on the machine (other
// users, interfaces by index but lo, routing realms, marks and labels of
// connections, cgroup paths) must be given as numbers. Hours and dates are UTC;
// nft(8) takes those of its time zone, which is the same where TZ is UTC.
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
