// Package attr encodes and decodes netlink attributes. It is the only codec of attributes in nft:
// expressions, sets, objects and messages use it.
//
// Functions append attributes to a buffer, in the layout of struct nlattr (linux/netlink.h): a 16-bit
// length that includes the header, a 16-bit type, the payload, and zeros up to the next multiple of four
// bytes. A Reader iterates over the attributes of a buffer. Read append.go first, then reader.go.
//
// Names end with the byte order of numbers: BE is big-endian, as in almost all attributes of nf_tables, NE
// is the machine's own (native endian). Headers are always in the machine's byte order.
//
// The package does not know the meaning of attributes. It does not split long lists: the caller has to
// check that no attribute exceeds MaxLen.
//
// The package exists because [github.com/mdlayher/netlink.AttributeEncoder] allocates for each attribute,
// and copies each nested level again. A batch of 100,000 elements has a million attributes.
//
// # Concurrency
//
// Functions keep no state. A Reader belongs to one goroutine.
//
// # Errors
//
// Append and Fields.Append return the errors of a Value. The other append functions panic with a
// *TooLongError for an attribute that exceeds MaxLen. Reading never panics: after a length beyond the
// buffer, or a number of the wrong size, Reader.Err returns ErrMalformed.
package attr
