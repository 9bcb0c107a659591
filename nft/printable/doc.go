// Package printable finds and escapes characters that a terminal or an editor does not
// show as they are: they could move the cursor, forge a line, or change the order in
// which a line is read. Strings come in; an offset, an error or an escaped string comes
// out.
//
// The aggregator rejects updates that have such characters ([Check]). What prints text
// that somebody else wrote escapes them ([Escape], [Lines], [NewWriter]), because content
// that an older version stored may have them. All use the same [Index].
//
// The package knows nothing of nft. Nothing in it has state, except a [Writer].
package printable
