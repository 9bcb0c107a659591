// Package attr encodes and decodes netlink attributes. It is the only codec of
// attributes in nft: expressions, sets, objects and messages are all built with it.
//
// What comes in is a buffer and the values of attributes; what goes out is the buffer
// with the attributes appended, in the layout of struct nlattr (linux/netlink.h): a
// 16-bit length that includes the header, a 16-bit type, the payload, and zeros up to
// the next multiple of four bytes. The other way, a Reader iterates over the
// attributes of a buffer. Read append.go first, then reader.go.
//
// The names of functions say the byte order of numbers: BE is big-endian, which is
// what nf_tables uses for almost all of them, NE is the machine's own (native endian).
// Headers are always in the machine's byte order.
//
// The package does not know what attributes mean. It does not split long lists: the caller
// has to check that no attribute exceeds MaxLen.
//
// The package exists because [github.com/mdlayher/netlink.AttributeEncoder] allocates
// for each attribute, and copies each nested level once more. A batch of 100,000
// elements has a million attributes.
//
// # Concurrency
//
// Functions keep no state. A Reader belongs to one goroutine.
//
// # Errors
//
// Append and Fields.Append return the errors of a Value. The other functions that append
// return no error: an attribute that exceeds MaxLen gets a wrong length. Reading never panics, whatever the buffer holds: a length
// that points out of the buffer, and a number of the wrong size, make Reader.Err
// return ErrMalformed.
package attr
