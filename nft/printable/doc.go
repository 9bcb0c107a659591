// Package printable finds and escapes characters that a terminal or an editor does not show unchanged: they
// could move the cursor, forge a line, or change the reading order of a line.
//
// The aggregator rejects updates with such characters ([Check]). Programs that print foreign text escape
// them ([Escape], [Lines], [NewWriter]), because content stored by an older version may have them. All use
// [Index].
//
// The package is independent of nft. Only a [Writer] has state.
package printable
