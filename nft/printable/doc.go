// Package printable finds and escapes characters hidden by terminals and editors, which could move
// the cursor, forge a line, or change the reading order of a line. The aggregator rejects updates
// with such characters ([Check]); programs that print foreign text escape them ([Escape], [Lines],
// [NewWriter]).
package printable
