// Package set compiles declarations of sets and maps and packs their elements.
//
// In: declarations and elements in nft's words ([Compile], [CompileMap], [Set.Pack]), or a set
// dumped by the kernel ([Set.Complete]). Out: a [Set] with the kernel's numbers and userdata, and
// an [Element] with packed key and data. Read set.go first, then compile.go and pack.go.
//
// The package rejects declarations on which nft(8) 1.0.6 aborts when listing. It does not read
// rules.
//
// # Errors
//
// An error in a typeof declaration wraps a *syntax.Error with a position in the declaration.
//
// # Concurrency
//
// A compiled Set is not modified and can be shared.
package set
