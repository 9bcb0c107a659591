// Package set compiles declarations of sets and maps and packs their elements.
//
// In: declarations and elements in nft's words ([Compile], [CompileMap], [Set.Pack]). Out: a [Set]
// with the kernel's numbers and userdata, and an [Element] with key and data packed into the
// kernel's bytes. [Set.Complete] does the same for a set dumped by the kernel. Read set.go first,
// then compile.go and pack.go; interval.go normalizes intervals, and typeof*.go store the
// expressions of typeof declarations as nft(8) 1.0.6 does.
//
// The package rejects declarations that the kernel accepts but nft(8) 1.0.6 cannot list without
// aborting. It does not read rules: package compile turns the braces in a rule into a set.
//
// # Errors
//
// An error in a typeof declaration wraps a *syntax.Error with a position in the declaration. Other
// errors name the set or the element.
//
// # Concurrency
//
// A Set is not modified after it is compiled and can be shared. A [Packer] belongs to one
// goroutine.
package set
