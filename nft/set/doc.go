// Package set compiles declarations of sets and maps and packs their elements.
//
// In: declarations and elements in nft's words ([Compile], [CompileMap], [Set.Pack]), or a set
// dumped by the kernel ([Set.Complete]). Out: a [Set] with the kernel's numbers and userdata, and
// an [Element] with key and data packed into the kernel's bytes. Read set.go first, then compile.go
// and pack.go; interval.go normalizes intervals, and typeof*.go store typeof expressions as nft(8)
// 1.0.6 does.
//
// The package rejects declarations on which nft(8) 1.0.6 aborts when listing, even if the kernel
// accepts them. It does not read rules: package compile turns the braces in a rule into a set.
//
// # Errors
//
// An error in a typeof declaration wraps a *syntax.Error with a position in the declaration. Other
// errors name the set or the element.
//
// # Concurrency
//
// A compiled Set is not modified and can be shared. A [Packer] belongs to one goroutine.
package set
