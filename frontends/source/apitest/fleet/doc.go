// Command fleet follows an API server as the Service frontends of many nodes do, each with
// the real code of frontends/source and its four watches, and counts their requests.
//
// All nodes are in this process. They reach the API server through a front in the same
// process, which counts what arrives and adds the credentials. Their connections to it are
// pipes of HTTP/1.1, so that neither handshakes nor file descriptors limit what a machine can
// show. While the front is closed it refuses connections, as a machine does on which no
// server runs, and counts these attempts.
//
// With "-policy capped" the nodes retry as weft once did (commit 238984c): each watch by
// itself, and after 3 s at most.
//
// The lines "close" and "open" on the standard input close and open the front; its end ends
// the command. The standard output has one line each second: the requests that arrived, the
// connections that were refused, and the watches that are open.
package main
