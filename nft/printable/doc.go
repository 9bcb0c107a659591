// Package printable finds and escapes characters hidden by terminals and editors. Such characters could
// move the cursor, forge a line, or change the reading order of a line.
//
// The aggregator rejects updates with such characters ([Check]). Programs that print foreign text escape
// them ([Escape], [Lines], [NewWriter]), because an older version may have stored them. All use [Index].
//
// The package is independent of nft. Only a [Writer] has state.
package printable
