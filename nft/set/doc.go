// Package set compiles declarations of sets and maps and packs their elements.
//
// What comes in is a declaration or an element in nft's words ([Compile],
// [CompileMap], [Set.Pack]); what goes out is a [Set] with the numbers and the
// userdata that the kernel stores, and an [Element] whose key and data are packed:
// converted to the kernel's bytes. [Set.Complete] does the same for a set that the kernel
// has dumped. Read
// set.go first, then compile.go and pack.go; interval.go normalizes intervals, and
// typeof*.go store the expressions of typeof declarations as nft(8) 1.0.6 does.
//
// The package rejects declarations that the kernel accepts but on which nft(8)
// 1.0.6 aborts when it lists them. It does not read rules: package compile turns the
// braces in a rule into a set.
//
// # Errors
//
// An error in a typeof declaration is a *syntax.Error with a position in the
// declaration, wrapped. Other errors name the set or the element.
//
// # Concurrency
//
// A Set is not modified after it is compiled and can be shared. A [Packer] belongs
// to one goroutine.
package set
