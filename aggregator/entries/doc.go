// Package entries splits fragments into entries, so that a database can store a change of a fragment
// without reading or writing the rest. The state directory and the history use this form.
//
// [Of] returns the entries of a fragment. [Add] rebuilds a fragment from entries in the order of their
// keys. [Patch] applies a patch to stored entries, with the same result as Of for the patched fragment.
//
//	head                             weft.v1.Fragment without tables
//	FAMILY TABLE                     weft.v1.Table: comment and flags
//	FAMILY TABLE chain NAME          weft.v1.Table with this chain
//	FAMILY TABLE flowtable NAME      weft.v1.Table with this flowtable
//	FAMILY TABLE object KIND NAME    weft.v1.Table with this object
//	FAMILY TABLE set NAME            weft.v1.Table with this set or map, without elements
//	FAMILY TABLE set NAME ELEMENT    weft.v1.Element
//
// [Stored] is a bucket of package store with the entries of a fragment. The rest of the package is pure.
package entries
