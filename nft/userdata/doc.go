// Package userdata encodes and decodes the userdata that nft(8) and weft store
// with tables, chains, rules, sets, elements and objects.
package userdata
