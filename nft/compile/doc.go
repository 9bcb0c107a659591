// package compile turns the objects of package nft into what the kernel takes:
// rules into expressions, declarations into their numbers, elements into packed
// bytes.
//
// # Rules
//
// [CompileRule] is a pipeline of pure functions: text, syntax tree, evaluated
// terms, expressions, bytes. Evaluation gives every expression its type, width
// and byte order, inserts the comparisons that a selector depends on ("tcp
// dport 80" matches only TCP) where the rule has not made them, and makes sets
// of braces. Then redundant comparisons go and adjacent ones are merged, and the
// generator allocates registers. The result is what nft(8) 1.0.6 makes of the
// same text, with the same registers, so that nft lists it as it was written.
//
// The vocabulary is data: protocol headers and their fields, meta keys and ct
// keys are tables of the selector files.
//
// # Sets
//
// [CompileSet] and [CompileMap] compile declarations; [Set.Pack] packs elements.
//
// # Objects
//
// [CompileObject] and [CompileFlowtable] compile named objects and flowtables;
// [ParseObject] makes the same of what the kernel holds. A number that nft(8) would cut
// to the width of its field, such as a port of 70000, is an error.
//
// # What it refuses
//
// It reads no clock, no file and no kernel: names of services and protocols, and
// of the users and groups that every Debian system has, are those of compiled-in
// tables; other users, the indices of interfaces (but lo) and cgroups must be
// given as numbers, hours and dates in UTC. What it does not know
// is an error with a place, never left out. It refuses what the kernel would
// take but nft(8) 1.0.6 aborts on when it lists it: the result of a map as data
// of a dynamic update, two conntrack ports in a concatenation, and masks on TCP
// options that have no name. It also refuses numbers that nft cuts off, such as a
// synproxy mss above 65535, and what nft takes for something else than it says: codes
// of reject above 255, Ethernet addresses that are written as numbers or with dots, a
// traffic class that is no number, what stands behind a date. What nft takes and then
// forgets, such as a log snaplen without a group, it forgets too. Raw payload has at
// most 128 bits, which is what the kernel compares.
//
// # Errors
//
// Errors in the text of a rule or of a typeof declaration are an [*syntax.Error],
// wrapped; all others say which object they are of.
//
// # Concurrency
//
// All functions are pure. What they return is not changed any more and can be
// used by any number of goroutines.
package compile
