// Package attr encodes and decodes netlink attributes (struct nlattr of linux/netlink.h): a 16-bit
// length with header, a 16-bit type, the payload, and zeros up to the next multiple of four bytes.
// Read append.go first.
//
// Names end with the byte order of numbers: BE is big-endian, NE is the machine's own (native
// endian).
//
// The package does not split long lists: the caller has to check that no attribute exceeds MaxLen.
// [github.com/mdlayher/netlink.AttributeEncoder] allocates for each attribute, and a batch of
// 100,000 elements has a million attributes.
//
// # Concurrency
//
// Functions keep no state. A Reader belongs to one goroutine.
//
// # Errors
//
// Append and Fields.Append return the errors of a Value. The other append functions panic with a
// *TooLongError beyond MaxLen. Reading never panics, but sets Reader.Err.
package attr
