// Package set compiles declarations of sets and maps and packs their elements.
//
// [Compile] and [CompileMap] turn a declaration into a [Set]; [Set.Pack] turns
// an element into the bytes that the kernel stores.
package set
