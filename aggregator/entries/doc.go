// Package entries splits fragments into entries, so that a database can store a change of a
// fragment without reading or writing the rest of it. The state directory and the history
// keep fragments in this form.
//
// [Of] returns the entries of a fragment. [Add] puts a fragment together again, from its
// entries in the order of their keys. [Patch] applies a patch to stored entries: it gives the
// same entries as Of of the fragment that the patch leads to.
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
