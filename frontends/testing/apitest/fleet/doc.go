// Command fleet follows an API server like the Service frontends of many nodes, and counts their requests.
//
// A front counts requests and adds the credentials. Connections are pipes, so neither handshakes nor file
// descriptors limit a machine.
//
// With "-policy capped" nodes retry as in commit 238984c: each watch by itself, after at most 3 s.
//
// The lines "close" and "open" on standard input close and open the front; the end of the input ends the
// command. Each second standard output has a line: arrived requests, refused connections, open watches.
package main
